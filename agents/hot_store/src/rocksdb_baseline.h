// Promise: RocksDB as a baseline, with the promise of --engine lmdb. `process`:
// the write-ahead log is on and handed to the kernel at each write, without
// waiting for the drive (WriteOptions: disableWAL false, sync false; Options:
// manual_wal_flush false). `system`: the same with sync true. RocksDB's own
// checksums are left on.
//
// The library is loaded on demand: a machine without it has all of hotstore but
// this.
#pragma once

#include "lmdb_env.h"
#include "subject.h"

namespace hotstore {

constexpr const char* kRocksDbLibrary = "librocksdb.so.7.8";  // Debian 12: package librocksdb7.8

// Throws Refusal when the library is not there or is another one, when
// `directory` holds anything, and where RocksDB itself refuses.
std::unique_ptr<Subject> open_rocksdb(const std::string& library, const std::string& directory,
                                      Durability durability, KeySchema schema);

}  // namespace hotstore
