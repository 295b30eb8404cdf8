// Promise: which store, as the command line names it; the same for every
// command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "hot_store.h"
#include "lmdb_env.h"

namespace hotstore {

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
  double wait_s = 1;
  double patience_s = 30;
  std::string location = "hash";
};

void add_store(CLI::App& app, StoreOptions& options);
// Throws Refusal for options that do not go together, and for a store that
// cannot be used.
HotStore open_store(const StoreOptions& options);

}  // namespace hotstore
