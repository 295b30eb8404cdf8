// Promise: every command names its store by the same options.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/stop_clock.h"
#include "cli/cli.h"
#include "lmdb_env.h"
#include "report/output_path.h"
#include "subject.h"

namespace hotstore {

constexpr double kMostSeconds = 2'592'000;  // 30 days
constexpr daqwriter::Bounds<std::uint64_t> kValueSize{"--value-size", 1, 64ull << 20, ""};
constexpr daqwriter::Bounds<std::uint32_t> kFragments{"--fragments", 1, 65'536, ""};
constexpr const char* kRawLmdb = "raw-lmdb";
constexpr const char* kRocksDb = "rocksdb";
constexpr const char* kRawRedis = "raw-redis";

struct StoreOptions {
  std::string engine = "lmdb";
  std::string key = "event:64,detector:16,run:16";
  std::string primary = "event";
  std::string directory;
  std::string level2_directory;
  std::uint64_t capacity = 1ull << 30;
  std::uint64_t level2_capacity = 1ull << 30;
  std::string durability = "process";
  std::vector<std::string> endpoints;
  std::vector<std::string> level2_endpoints;
  int replicas = 0;
  double stall_limit_s = daqwriter::kDefaultStallLimitS;
  double wait_s = 1;
  double patience_s = 30;
  std::string location = "hash";
};

// The store's own engines; `further` names what this command takes beside them.
void add_store(CLI::App& app, StoreOptions& options, const std::vector<std::string>& further = {});
bool is_embedded(const std::string& engine);  // a call in this process
bool is_baseline(const std::string& engine);  // without our layer
std::string transport_of(const StoreOptions& options);
// Throws Refusal for options that do not go together, for numbers out of
// bounds, and for a store that cannot be used; Damage for one that is damaged.
void check_store(const StoreOptions& options);
// Throws Refusal unless the results lie apart from what is `used`; daqwriter::Unanswered without an answer in
// time.
void check_results(const daqwriter::OutputPath& json_path, const std::vector<std::string>& used,
                   double stall_limit_s, const std::atomic<int>& stop_signal);
HotStore open_store(const StoreOptions& options, Access access = Access::change);
// Opens baselines too. `rocksdb_library` is the library that --engine rocksdb loads.
std::unique_ptr<Subject> open_subject(const StoreOptions& options, const std::string& rocksdb_library);
std::string promise_of(const StoreOptions& options);  // without opening it

// Throws Refusal, which names the option, its value and the bounds.
void require_number(const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most);

}  // namespace hotstore
