#include <array>

#include "base/status.h"
#include "baselines.h"

namespace hotstore {
namespace {

using daqwriter::Failure;

class RedisPipe : public Pipe {
 public:
  RedisPipe(Endpoint endpoint, const KeySchema& schema)
      : endpoint_(std::move(endpoint)), schema_(schema), context_(connect_to(endpoint_, error_)) {
    if (!context_) throw Failure("Redis at " + error_);
  }

  void put(std::span<const Request> batch, std::span<Answer> answers) override {
    for (const Request& request : batch)
      ask(*context_, std::array<View, 4>{"SET", schema_.encode(request.key), request.value, "NX"});
    for (Answer& answer : answers) {
      const RawReply reply = next();
      answer = is_full(*reply)                      ? Answer::full
               : checked(*reply) == REDIS_REPLY_NIL ? Answer::exists
                                                    : Answer::ok;
    }
  }

  void get(std::span<const Request> batch, std::span<Bytes> values, std::span<Answer> answers) override {
    for (const Request& request : batch)
      ask(*context_, std::array<View, 2>{"GET", schema_.encode(request.key)});
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const RawReply reply = next();
      answers[i] = checked(*reply) == REDIS_REPLY_STRING ? Answer::ok : Answer::not_found;
      if (answers[i] == Answer::ok) values[i].assign(reply->str, reply->len);
    }
  }

  void remove(std::span<const Request> batch, std::span<Answer> answers) override {
    for (const Request& request : batch)
      ask(*context_, std::array<View, 2>{"DEL", schema_.encode(request.key)});
    for (Answer& answer : answers) {
      const RawReply reply = next();
      checked(*reply);
      answer = reply->integer == 1 ? Answer::ok : Answer::not_found;
    }
  }

 private:
  RawReply next() {
    RawReply reply = next_reply(*context_);
    if (reply) return reply;
    throw Failure("Redis at " + endpoint_.text() + " was lost in mid-run: " + context_->errstr);
  }

  static bool is_full(const redisReply& reply) {
    return reply.type == REDIS_REPLY_ERROR && View(reply.str, reply.len).starts_with("OOM ");
  }

  int checked(const redisReply& reply) const {
    if (reply.type == REDIS_REPLY_ERROR)
      throw Failure("Redis at " + endpoint_.text() + ": " + std::string(reply.str, reply.len));
    return reply.type;
  }

  Endpoint endpoint_;
  const KeySchema& schema_;
  std::string error_;
  RedisContext context_;
};

class RawRedis : public Subject {
 public:
  RawRedis(const Endpoint& endpoint, KeySchema schema) : endpoint_(endpoint), schema_(std::move(schema)) {
    RedisOptions options;
    options.endpoints = {endpoint};
    options.patience_s = 0;
    promise_ = RedisLink(options).durability();
  }

  std::unique_ptr<Session> session() override { return nullptr; }
  std::unique_ptr<Pipe> pipe() override { return std::make_unique<RedisPipe>(endpoint_, schema_); }
  std::string promise() const override { return promise_; }

 private:
  Endpoint endpoint_;
  KeySchema schema_;
  std::string promise_;
};

}  // namespace

std::unique_ptr<Subject> open_raw_redis(const Endpoint& endpoint, KeySchema schema) {
  return std::make_unique<RawRedis>(endpoint, std::move(schema));
}

}  // namespace hotstore
