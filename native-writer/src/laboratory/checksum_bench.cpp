#include "laboratory/checksum_bench.h"

#include <zlib.h>

#include <algorithm>
#include <map>

#include "base/memory.h"
#include "base/placement.h"
#include "base/status.h"
#include "base/timing.h"
#include "base/units.h"
#include "format/payload.h"
#include "report/report_json.h"

namespace daqwriter {
namespace {

constexpr double kNsPerS = 1e9;

std::uint32_t by_zlib(std::span<const std::byte> data) {
  return static_cast<std::uint32_t>(adler32_z(1, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

std::vector<int> slave_cpus(const ChecksumOptions& options) {
  return {options.cpus.rbegin() + 1, options.cpus.rend()};
}

// False at the first difference, which is then in `result`, and when a signal asked for the end.
bool compare_each_place(AdlerVariant variant, unsigned threads, AdlerEngine& engine,
                        std::span<const std::byte> event, const std::atomic<int>& stop_signal,
                        ChecksumResult& result) {
  const std::uint32_t expected = by_zlib(event);
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

// Compares every variant with zlib for one event, cut at every place and continued. Fills in `result.splits`,
// or `result.mismatch`. Threads are used however short the parts are.
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

// One variant with one number of threads on one size. The baselines are of the same kind: zlib, one thread.
struct Case {
  AdlerVariant variant;
  unsigned threads;
  std::span<const std::byte> data;
  std::uint32_t expected;
  std::unique_ptr<AdlerEngine> engine;
  std::vector<double> ns;
};

class VariantBench {
 public:
  VariantBench(const ChecksumOptions& options, const AdlerFactory& make_engine,
               const ChecksumObserver& observer, const std::atomic<int>& stop_signal, ChecksumResult& result)
      : options_(options),
        make_engine_(make_engine),
        observer_(observer),
        stop_signal_(stop_signal),
        result_(result),
        slave_cpus_(slave_cpus(options)),
        memory_(*std::max_element(options.sizes.begin(), options.sizes.end()), std::nullopt) {
    fill_payload({memory_.data(), memory_.size()}, 1, 0, 0);
  }

  void run() {
    for (const std::uint64_t size : options_.sizes) {
      if (stopped()) return;
      measure_size(size);
    }
  }

 private:
  bool stopped() const { return stop_signal_.load(std::memory_order_relaxed) != 0 || result_.mismatch; }

  Case make_case(AdlerVariant variant, unsigned threads, std::size_t bytes) {
    const std::span<const std::byte> data(memory_.data(), bytes);
    return {variant,
            threads,
            data,
            by_zlib(data),
            make_engine_(variant, threads, options_.smallest_parallel_bytes, slave_cpus_),
            {}};
  }

  void measure(Case& c) {
    const double ns = ns_per_call(options_.time_s, [&] {
      const std::uint32_t actual = c.engine->update(1, c.data);
      if (actual != c.expected)
        result_.mismatch = {adler_variant_name(c.variant), c.data.size(), c.threads, c.expected, actual};
      return actual == c.expected;
    });
    if (!result_.mismatch) c.ns.push_back(ns);
  }

  // In turns, so that a slow drift of the machine meets all of them alike.
  void measure_size(std::uint64_t size) {
    std::map<std::size_t, Case> baselines;  // by size: the whole and each share
    std::vector<Case> cases;
    baselines.emplace(size, make_case(AdlerVariant::zlib, 1, size));
    for (const AdlerVariant variant : options_.variants) {
      for (const unsigned threads : options_.threads) {
        if (!uses_threads(variant) && threads != options_.threads.front()) continue;
        const unsigned used = uses_threads(variant) ? threads : 1;
        cases.push_back(make_case(variant, used, size));
        if (!baselines.contains(size / used))
          baselines.emplace(size / used, make_case(AdlerVariant::zlib, 1, size / used));
      }
    }
    for (unsigned turn = 0; turn < options_.repetitions && !stopped(); ++turn) {
      for (auto& [bytes, baseline] : baselines) {
        if (!stopped()) measure(baseline);
      }
      for (Case& c : cases) {
        if (!stopped()) measure(c);
      }
    }
    for (const Case& c : cases) {
      if (!c.ns.empty()) report(c, baselines);
    }
  }

  void report(const Case& c, const std::map<std::size_t, Case>& baselines) {
    const auto bytes = static_cast<double>(c.data.size());
    const Spread ns = spread_of(c.ns);
    const double whole_ns = spread_of(baselines.at(c.data.size()).ns).median;
    std::vector<double> shares = baselines.at(c.data.size() / c.threads).ns;
    const double share_ns = spread_of(shares).median;
    shares.resize(c.ns.size());  // an interrupted turn measured the baselines only
    VariantRow row{c.variant, c.data.size(), c.threads, c.ns.size(), {}, ns.median, {}, {}, {}, c.ns, shares};
    row.bytes_per_s = {bytes * kNsPerS / ns.median, bytes * kNsPerS / ns.max, bytes * kNsPerS / ns.min};
    row.speed_up = whole_ns / ns.median;
    if (uses_threads(c.variant)) row.overhead_ns = ns.median - share_ns;
    if (c.threads > 1) {
      const double n = c.threads;
      row.serial_share = (n / row.speed_up - 1) / (n - 1);
    }
    result_.variants.push_back(row);
    observer_.variant(row);
  }

  const ChecksumOptions& options_;
  const AdlerFactory& make_engine_;
  const ChecksumObserver& observer_;
  const std::atomic<int>& stop_signal_;
  ChecksumResult& result_;
  std::vector<int> slave_cpus_;
  Memory memory_;
};

// Each call takes the last one's result, so that they cannot overlap.
double combine_ns(double time_s) {
  constexpr z_off_t kChunk = 1 << 20;
  std::uint64_t running = 1;
  return ns_per_call(time_s, [&] {
    running = adler32_combine(running, 0x12345678, kChunk);
    return running != 0xffffffff;  // never: keeps the calls
  });
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

void check_checksum_options(const ChecksumOptions& options) {
  const std::uint64_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  const std::uint64_t working_set = options.memory ? memory_bench_bytes(options) : 0;
  require_memory(std::max(largest, working_set), "--sizes and --working-set");
  check_reporting(options);
}

ChecksumResult run_checksum_bench(const ChecksumOptions& options, const AdlerFactory& make_engine,
                                  const ChecksumObserver& observer, const std::atomic<int>& stop_signal) {
  ChecksumResult result;
  const auto stopped = [&] { return stop_signal.load(std::memory_order_relaxed) != 0 || result.mismatch; };
  try {
    pin_this_thread({options.cpus.back()});
    if (options.splits_bytes > 0) compare_splits(options, make_engine, stop_signal, result);
    if (!stopped()) VariantBench(options, make_engine, observer, stop_signal, result).run();
    if (options.memory && !stopped()) measure_memory(options, observer, stop_signal, result);
    std::vector<double> combine;
    while (combine.size() < options.repetitions && !stopped()) combine.push_back(combine_ns(options.time_s));
    if (!combine.empty()) result.combine_ns = spread_of(combine);
  } catch (const Failure& failure) {
    result.error = failure.what();
  }
  result.interrupted = stop_signal.load(std::memory_order_relaxed) != 0;
  return result;
}

}  // namespace daqwriter
