// Promise: measures what checksums cost: the variants of adler32 by event size and threads, and copies with
// checksums from DRAM. Every result is compared with zlib's; the first difference ends the measurement.
// On request it first compares every variant with zlib for an event cut at every place.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checksum/parallel_adler.h"
#include "report/reporting.h"

namespace daqwriter {

struct ChecksumOptions : Reporting {
  std::vector<std::uint64_t> sizes;
  std::vector<unsigned> threads;
  std::vector<AdlerVariant> variants;
  std::vector<int> cpus;  // that the process may use: the last one is the master's, the others the slaves'
  unsigned repetitions = 5;
  double time_s = 0.05;                       // of one measurement
  std::uint64_t smallest_parallel_bytes = 0;  // 0: threads whatever the size, to show the crossover
  std::uint64_t working_set_bytes = 256ull << 20;
  std::uint64_t splits_bytes = 0;  // an event of so many is cut at every place and compared; 0: none
  bool memory = true;              // measure checksums and copies from DRAM, too
};

// Over the repetitions.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};
Spread spread_of(std::vector<double> values);  // not empty

struct VariantRow {
  AdlerVariant variant;
  std::uint64_t bytes;  // per call
  unsigned threads;
  std::size_t repetitions;  // fewer than asked for after an interruption
  Spread bytes_per_s;
  double ns_per_call;
  std::optional<double> overhead_ns;   // over zlib in one thread on bytes / threads
  double speed_up;                     // over zlib in one thread on all bytes
  std::optional<double> serial_share;  // that gives this speed-up by Amdahl's law
  std::vector<double> ns;              // per call, of each turn
  std::vector<double> share_ns;        // zlib in one thread on bytes / threads, in the same turns
};

struct MemoryRow {
  std::string operation;
  std::size_t threads;
  std::size_t repetitions;
  Spread bytes_per_s;
};

// Every variant and number of threads on an event of `bytes`, cut at each of its bytes + 1 places.
struct SplitCheck {
  std::uint64_t bytes = 0;
  std::uint64_t comparisons = 0;  // with zlib's checksum of the whole
};

struct ChecksumMismatch {
  std::string where;
  std::uint64_t bytes;
  unsigned threads;
  std::uint32_t expected;
  std::uint32_t actual;
};

struct ChecksumResult {
  std::vector<VariantRow> variants;
  std::vector<MemoryRow> memory;
  std::optional<Spread> combine_ns;
  std::optional<SplitCheck> splits;
  std::optional<ChecksumMismatch> mismatch;
  std::string error;  // what the system refused after the start
  bool interrupted = false;
};

using AdlerFactory =
    std::function<std::unique_ptr<AdlerEngine>(AdlerVariant, unsigned, std::size_t, const std::vector<int>&)>;

// Called as results become known.
struct ChecksumObserver {
  std::function<void(const VariantRow&)> variant;
  std::function<void(const MemoryRow&)> memory;
};

void check_checksum_options(const ChecksumOptions& options);  // throws Refusal
ChecksumResult run_checksum_bench(const ChecksumOptions& options, const AdlerFactory& make_engine,
                                  const ChecksumObserver& observer, const std::atomic<int>& stop_signal);

// A part of it: measures one core's copies and checksums from DRAM, and what all cores together copy and
// check; appends to `result`; ends early when stopped or at a mismatch.
void measure_memory(const ChecksumOptions& options, const ChecksumObserver& observer,
                    const std::atomic<int>& stop_signal, ChecksumResult& result);
std::uint64_t memory_bench_bytes(const ChecksumOptions& options);  // that it will need

}  // namespace daqwriter
