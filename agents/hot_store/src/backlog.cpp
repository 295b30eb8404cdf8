#include "backlog.h"

#include <cmath>
#include <fstream>
#include <limits>

#include "base/status.h"
#include "base/units.h"
#include "redis_link.h"

namespace hotstore {
namespace {

constexpr double kPage = 4096;
constexpr double kPageHead = 16, kNodeHead = 8;
constexpr double kInline = 2036;      // an LMDB record that is larger has pages of its own
constexpr double kKeyAndSum = 18;     // of --engine lmdb: the key, the head and the checksum
constexpr double kRedisEntry = 128;   // dictionary entry, key and the value's header, by MEMORY USAGE of one
constexpr double kRocksDbCopies = 2;  // in the log, and in a memtable or a table

// In bytes; infinity where the kernel does not tell.
double available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (double kib = 0; file >> name >> kib; std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::numeric_limits<double>::infinity();
}

bool on_this_machine(const StoreOptions& store) {
  if (is_embedded(store.engine)) return true;
  return store.endpoints.size() == 1 &&
         (transport_of(store) == "unix" || store.endpoints.front().starts_with("127."));
}

}  // namespace

double backlog_room(const std::string& engine, std::uint64_t value_bytes, std::uint64_t backlog_bytes) {
  const auto value = static_cast<double>(value_bytes);
  const double values = std::ceil(static_cast<double>(backlog_bytes) / value);
  if (engine == kRocksDb) return values * (value + kKeyAndSum) * kRocksDbCopies;
  if (!is_embedded(engine)) return values * (value + kRedisEntry);
  const double node = kNodeHead + value + kKeyAndSum;
  if (node <= kInline) return values * kPage / std::floor((kPage - kPageHead) / (node + 2));
  return values * (std::ceil((kPageHead + value + kKeyAndSum) / kPage) * kPage + kNodeHead + kKeyAndSum);
}

void check_backlog(const StoreOptions& store, const LoadOptions& load, bool backlog_given) {
  const double room = backlog_room(store.engine, load.value_bytes, load.backlog_bytes);
  const std::string arithmetic = "--backlog " + daqwriter::format_size(load.backlog_bytes) + ": values of " +
                                 std::to_string(load.value_bytes) + " B take " + daqwriter::format_gb(room) +
                                 " with --engine " + store.engine;
  const bool mapped = store.engine == "lmdb" || store.engine == kRawLmdb;
  if (mapped && backlog_given && load.consumers > 0 && room > static_cast<double>(store.capacity))
    throw daqwriter::Refusal(arithmetic + ", and --capacity is " + daqwriter::format_size(store.capacity) +
                             " (" + daqwriter::format_gb(store.capacity) +
                             "): give a larger --capacity or a smaller --backlog");
  const double available = available_memory();
  if (load.consumers > 0 && on_this_machine(store) && room > available)
    throw daqwriter::Refusal(arithmetic + ", and this machine has " + daqwriter::format_gb(available) +
                             " of memory available: give a smaller --backlog");
}

}  // namespace hotstore
