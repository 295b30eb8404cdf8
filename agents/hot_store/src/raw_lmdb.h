// Promise: LMDB without our layer: the environment, the keys, the records' size
// and the promise of --engine lmdb, and each operation a transaction of its own
// through LMDB's own functions: no shared commits, no checksum, no lock.
#pragma once

#include "lmdb_engine.h"
#include "subject.h"

namespace hotstore {

class RawLmdb : public Subject {
 public:
  // Throws Refusal for a folder that a hot store has filled.
  RawLmdb(std::unique_ptr<LmdbEnv> env, KeySchema schema);

  std::unique_ptr<Session> session() override;
  std::string gone() const override { return engine_.gone(); }
  std::string promise() const override { return engine_.promise(); }

 private:
  KeySchema schema_;
  LmdbEngine engine_;
};

}  // namespace hotstore
