// Shared by the tests: a directory that is removed with the test, a clock that
// they move, and the plain model that they compare the store with.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "hot_store.h"
#include "lmdb_engine.h"

namespace hotstore::testing {

class TempDir {
 public:
  TempDir() {
    char name[] = "hotstore-test-XXXXXX";
    path_ = std::filesystem::absolute(mkdtemp(name));
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::filesystem::path path(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct TestClock {
  std::atomic<std::int64_t> now_ms{1'000'000};
};

constexpr std::uint64_t kCapacity = 16 << 20;

inline KeySchema schema_of_paper() {
  return KeySchema::parse("event:64,detector:16,run:16", "event");
}

inline std::unique_ptr<LmdbEnv> open_env(const std::filesystem::path& directory,
                                         std::uint64_t capacity = kCapacity,
                                         Durability durability = Durability::process) {
  return std::make_unique<LmdbEnv>(std::make_unique<LevelFolder>(directory), capacity, durability);
}

inline HotStore open_lmdb(const TempDir& directory, TestClock& clock,
                          const KeySchema& schema = schema_of_paper(), std::uint64_t capacity = kCapacity,
                          Durability durability = Durability::process) {
  auto fast = std::make_unique<LevelFolder>(directory.path("fast"));
  auto large = std::make_unique<LevelFolder>(directory.path("large"), Access::change, fast.get());
  auto first = std::make_unique<LmdbEnv>(std::move(fast), capacity, durability);
  auto second = std::make_unique<LmdbEnv>(std::move(large), capacity, durability);
  auto engine =
      lmdb_engine(std::move(first), schema.primary_bytes(), [&clock] { return clock.now_ms.load(); });
  return HotStore(schema, std::move(engine), lmdb_value_store(std::move(second)));
}

}  // namespace hotstore::testing
