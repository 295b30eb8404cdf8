// Promise: engines without our layer, which show what the layer costs. LMDB and RocksDB give the promise of
// --engine lmdb.
#pragma once

#include "lmdb_env.h"
#include "redis_link.h"
#include "subject.h"

namespace hotstore {

// LMDB with the environment, the keys and the records' size of --engine lmdb, and each operation a
// transaction of its own through LMDB's own functions: no shared commits, no checksum, no lock. Throws
// Refusal for a folder that a hot store has filled.
std::unique_ptr<Subject> open_raw_lmdb(std::unique_ptr<LmdbEnv> env, KeySchema schema);

// Plain Redis commands without our scripts: SET with NX, GET, DEL, over TCP or a Unix socket, up to a batch
// of them under way at once on a connection for each thread. Throws Refusal when no server answers at
// `endpoint`.
std::unique_ptr<Subject> open_raw_redis(const Endpoint& endpoint, KeySchema schema);

constexpr const char* kRocksDbLibrary = "librocksdb.so.7.8";  // Debian 12: package librocksdb7.8

// RocksDB. `process`: the write-ahead log is on and handed to the kernel at each write, without waiting for
// the drive (WriteOptions: disableWAL false, sync false; Options: manual_wal_flush false). `system`: the same
// with sync true. RocksDB's own checksums are left on. The library is loaded on demand: a machine without it
// has all of hotstore but this. Throws Refusal when the library is not there or is another one, when
// `directory` holds anything, and where RocksDB itself refuses.
std::unique_ptr<Subject> open_rocksdb(const std::string& library, const std::string& directory,
                                      Durability durability, KeySchema schema);

}  // namespace hotstore
