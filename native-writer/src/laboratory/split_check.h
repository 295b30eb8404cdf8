// Promise: every variant gives zlib's adler32 for one event cut at every place and continued, by every number
// of threads; the first difference is found.
#pragma once

#include <atomic>

#include "laboratory/checksum_bench.h"

namespace daqwriter {

// Fills in `result.splits`, or `result.mismatch`. Threads are used however short the parts are.
void compare_splits(const ChecksumOptions& options, const AdlerFactory& make_engine,
                    const std::atomic<int>& stop_signal, ChecksumResult& result);

}  // namespace daqwriter
