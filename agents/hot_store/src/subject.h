// Promise: one interface for all that a load drives: the hot store on one of its
// engines, or an engine without our layer, which shows what the layer costs. A
// baseline refuses a put of a key that is there, as the store does.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hot_store.h"

namespace hotstore {

// Operations of one thread, one at a time.
class Session {
 public:
  virtual ~Session() = default;
  virtual Answer put(const Key& key, View value, Level level) = 0;
  virtual Answer get(const Key& key, Bytes& value) = 0;
  virtual Answer remove(const Key& key) = 0;
};

// Hands each operation to a `Target` that several threads may use at once.
template <typename Target>
class DirectSession : public Session {
 public:
  explicit DirectSession(Target& target) : target_(target) {}
  Answer put(const Key& key, View value, Level level) override { return target_.put(key, value, level); }
  Answer get(const Key& key, Bytes& value) override { return target_.get(key, value); }
  Answer remove(const Key& key) override { return target_.remove(key); }

 private:
  Target& target_;
};

struct Request {
  Key key;
  View value;  // of a put
};

// Operations of one thread, all of a batch under way at once. `answers` and
// `values` have the batch's size. Throws Failure when the connection is lost:
// nobody then knows which of the batch were done.
class Pipe {
 public:
  virtual ~Pipe() = default;
  virtual void put(std::span<const Request> batch, std::span<Answer> answers) = 0;
  virtual void get(std::span<const Request> batch, std::span<Bytes> values, std::span<Answer> answers) = 0;
  virtual void remove(std::span<const Request> batch, std::span<Answer> answers) = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::unique_ptr<Session> session() = 0;
  // A subject that has pipes is driven through them and has no session.
  virtual std::unique_ptr<Pipe> pipe() { return nullptr; }
  virtual HotStore* store() { return nullptr; }
  virtual std::optional<std::uint64_t> commits() const { return std::nullopt; }
  virtual std::string gone() const { return {}; }  // as Engine::gone
  virtual std::string promise() const = 0;
};

}  // namespace hotstore
