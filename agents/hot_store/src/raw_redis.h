// Promise: plain Redis commands without our scripts: SET with NX, GET, DEL, over
// TCP or a Unix socket, up to a batch of them under way at once on a connection
// for each thread.
#pragma once

#include "redis_link.h"
#include "subject.h"

namespace hotstore {

class RawRedis : public Subject {
 public:
  // Throws Refusal when no server answers at `endpoint`.
  RawRedis(const Endpoint& endpoint, KeySchema schema);

  std::unique_ptr<Session> session() override { return nullptr; }
  std::unique_ptr<Pipe> pipe() override;
  std::string promise() const override { return promise_; }

 private:
  Endpoint endpoint_;
  KeySchema schema_;
  std::string promise_;
};

}  // namespace hotstore
