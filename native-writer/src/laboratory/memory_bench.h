// Promise: measures one core's copies and checksums from DRAM, and what all cores together copy and check.
// Every checksum is compared with zlib's and every copy with its source.
#pragma once

#include "laboratory/checksum_bench.h"

namespace daqwriter {

// Appends to `result`; ends early when stopped or at a mismatch.
void measure_memory(const ChecksumOptions& options, const ChecksumObserver& observer,
                    const std::atomic<int>& stop_signal, ChecksumResult& result);
std::uint64_t memory_bench_bytes(const ChecksumOptions& options);  // that it will need

}  // namespace daqwriter
