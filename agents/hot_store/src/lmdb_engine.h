// Promise: the store's engine on LMDB: an embedded B+ tree in a mapped file,
// which several processes may use at the same time; every operation is one
// transaction.
//
// One table; the first byte says what a key stands for:
//   d primary rest -> record          l primary -> token, deadline, owner
//   m name -> metadata                x deadline primary -> nothing: the leases
//   in the order in which they run out
// Behind each record stands a checksum of the key and the record.
#pragma once

#include <functional>
#include <memory>

#include "engine.h"
#include "lmdb_env.h"

namespace hotstore {

using ClockMs = std::function<std::int64_t()>;  // since the epoch: leases outlive a restart
std::int64_t system_clock_ms();
std::string promise_of(Durability durability);

std::unique_ptr<Engine> lmdb_engine(std::unique_ptr<LmdbEnv> env, std::size_t primary_bytes,
                                    ClockMs now = system_clock_ms);
std::unique_ptr<ValueStore> lmdb_value_store(std::unique_ptr<LmdbEnv> env);

}  // namespace hotstore
