#include "laboratory/split_check.h"

#include <zlib.h>

#include "checksum/checksum.h"
#include "format/payload.h"

namespace daqwriter {
namespace {

using Bytes = std::span<const std::byte>;

std::vector<int> slave_cpus(const ChecksumOptions& options) {
  return {options.cpus.rbegin() + 1, options.cpus.rend()};
}

// False at the first difference, which is then in `result`, and when a signal asked for the end.
bool compare_each_place(AdlerVariant variant, unsigned threads, AdlerEngine& engine, Bytes event,
                        const std::atomic<int>& stop_signal, ChecksumResult& result) {
  const auto expected =
      static_cast<std::uint32_t>(adler32_z(1, reinterpret_cast<const Bytef*>(event.data()), event.size()));
  for (std::size_t place = 0; place <= event.size(); ++place) {
    if (stop_signal.load(std::memory_order_relaxed) != 0) return false;
    const std::uint32_t first = engine.update(checksum_initial(ChecksumKind::adler32), event.first(place));
    const std::uint32_t actual = engine.update(first, event.subspan(place));
    if (actual != expected) {
      result.mismatch = {adler_variant_name(variant) + ", cut at byte " + std::to_string(place), event.size(),
                         threads, expected, actual};
      return false;
    }
    ++result.splits->comparisons;
  }
  return true;
}

}  // namespace

void compare_splits(const ChecksumOptions& options, const AdlerFactory& make_engine,
                    const std::atomic<int>& stop_signal, ChecksumResult& result) {
  std::vector<std::byte> event(options.splits_bytes);
  fill_payload(event, 1, 0, 0);
  result.splits = SplitCheck{options.splits_bytes, 0};
  for (const AdlerVariant variant : options.variants) {
    for (const unsigned threads : options.threads) {
      if (!uses_threads(variant) && threads != options.threads.front()) continue;
      const unsigned used = uses_threads(variant) ? threads : 1;
      const auto engine = make_engine(variant, used, 0, slave_cpus(options));
      if (!compare_each_place(variant, used, *engine, event, stop_signal, result)) return;
    }
  }
}

}  // namespace daqwriter
