#include "subject.h"

namespace hotstore {
namespace {

class StoreSession : public Session {
 public:
  explicit StoreSession(HotStore& store) : store_(store) {}
  Answer put(const Key& key, View value, Level level) override { return store_.put(key, value, level); }
  Answer get(const Key& key, Bytes& value) override { return store_.get(key, value); }
  Answer remove(const Key& key) override { return store_.remove(key); }

 private:
  HotStore& store_;
};

class StoreSubject : public Subject {
 public:
  explicit StoreSubject(HotStore store) : store_(std::move(store)) {}
  std::unique_ptr<Session> session() override { return std::make_unique<StoreSession>(store_); }
  HotStore* store() override { return &store_; }
  std::optional<std::uint64_t> commits() const override { return store_.engine().commits(); }
  std::string gone() const override { return store_.engine().gone(); }
  std::string promise() const override { return store_.engine().promise(); }

 private:
  HotStore store_;
};

}  // namespace

std::unique_ptr<Subject> subject_of(HotStore store) {
  return std::make_unique<StoreSubject>(std::move(store));
}

}  // namespace hotstore
