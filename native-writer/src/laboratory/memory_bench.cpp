#include <zlib.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/memory.h"
#include "base/placement.h"
#include "base/status.h"
#include "base/timing.h"
#include "checksum/checksum.h"
#include "format/payload.h"
#include "laboratory/checksum_bench.h"

namespace daqwriter {
namespace {

// A share of the last-level cache is far smaller.
std::uint64_t bytes_per_cpu(const ChecksumOptions& options) {
  return options.working_set_bytes / 4;
}

struct Operation {
  std::string name;
  ChecksumKind kind;
  bool copies;
  std::function<std::uint32_t()> pass;  // the checksum, or 0
};

class OneCore {
 public:
  explicit OneCore(std::size_t bytes) : source_(bytes, std::nullopt), destination_(bytes, std::nullopt) {
    fill_payload({source_.data(), bytes}, 1, 0, 0);
    const auto* data = reinterpret_cast<const Bytef*>(source_.data());
    expected_crc_ = static_cast<std::uint32_t>(crc32_z(0, data, bytes));
    expected_adler_ = static_cast<std::uint32_t>(adler32_z(1, data, bytes));
  }

  std::vector<Operation> operations() {
    std::byte* to = destination_.data();
    const std::byte* from = source_.data();
    const std::size_t bytes = source_.size();
    const auto copy = [=](auto function) {
      return [=] {
        function(to, from, bytes);
        publish_streamed();
        return 0u;
      };
    };
    const auto alone = [=](ChecksumKind kind) { return [=] { return checksum(kind, {from, bytes}); }; };
    const auto fused = [=](ChecksumKind kind) {
      return [=] {
        const std::uint32_t value = copy_checksum(kind, checksum_initial(kind), to, from, bytes);
        publish_streamed();
        return value;
      };
    };
    using enum ChecksumKind;
    return {{"memcpy", off, true, copy([](auto... a) { std::memcpy(a...); })},
            {"non-temporal-copy", off, true, copy([](auto... a) { stream_copy(a...); })},
            {"crc32", crc32, false, alone(crc32)},
            {"adler32", adler32, false, alone(adler32)},
            {"crc32-copy", crc32, true, fused(crc32)},
            {"adler32-copy", adler32, true, fused(adler32)}};
  }

  // Bytes per second; 0 at a mismatch, which is then in `result`.
  double measure(const Operation& operation, double time_s, ChecksumResult& result) {
    const std::uint64_t bytes = source_.size();
    const std::uint32_t expected = operation.kind == ChecksumKind::crc32     ? expected_crc_
                                   : operation.kind == ChecksumKind::adler32 ? expected_adler_
                                                                             : 0;
    if (operation.copies) std::memset(destination_.data(), 0, bytes);
    const double ns = ns_per_call(time_s, [&] {
      const std::uint32_t actual = operation.pass();
      if (actual != expected) result.mismatch = {operation.name + " from DRAM", bytes, 1, expected, actual};
      return actual == expected;
    });
    if (!result.mismatch && operation.copies) {
      const std::uint32_t copied = checksum(ChecksumKind::crc32, {destination_.data(), bytes});
      if (copied != expected_crc_)
        result.mismatch = {operation.name + ": the copy's crc32", bytes, 1, expected_crc_, copied};
    }
    return result.mismatch ? 0 : static_cast<double>(bytes) / (ns * 1e-9);
  }

 private:
  Memory source_;
  Memory destination_;
  std::uint32_t expected_crc_;
  std::uint32_t expected_adler_;
};

// Measures all CPUs at once: each uses memory of its own node, and all of them begin each operation together.
class AllCores {
 public:
  AllCores(const std::vector<int>& cpus, std::size_t bytes) : cpus_(cpus), bytes_(bytes) {}

  // Returns, for each operation of `asked`, the sum of all CPUs' bytes per second; 0 where one of them found
  // a mismatch, which is then in `result`.
  std::vector<double> measure(const std::vector<std::string>& asked, double time_s, ChecksumResult& result) {
    std::barrier together(static_cast<std::ptrdiff_t>(cpus_.size()));
    std::vector<OfOne> of_each(cpus_.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < cpus_.size(); ++i) {
        OfOne& found = of_each[i];
        try {
          threads.emplace_back([&, i] { run(cpus_[i], asked, time_s, together, found); });
        } catch (const std::system_error& error) {
          found.error = std::string("cannot create a thread per CPU: ") + error.what();
          together.arrive_and_drop();  // the others wait for everybody
        }
      }
    }
    std::vector<double> sums(asked.size(), 0);
    for (const OfOne& found : of_each) {
      if (!found.error.empty()) throw Failure(found.error);
      if (found.result.mismatch) result.mismatch = found.result.mismatch;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += found.rates[i];
    }
    return sums;
  }

 private:
  struct OfOne {
    std::vector<double> rates;
    ChecksumResult result;
    std::string error;
  };

  void run(int cpu, const std::vector<std::string>& asked, double time_s, std::barrier<>& together,
           OfOne& found) const {
    try {
      pin_this_thread({cpu});
      OneCore core(bytes_);
      const auto operations = core.operations();
      for (const std::string& name : asked) {
        const auto operation = std::ranges::find(operations, name, &Operation::name);
        together.arrive_and_wait();
        found.rates.push_back(found.result.mismatch ? 0 : core.measure(*operation, time_s, found.result));
      }
    } catch (const std::exception& failure) {
      found.error = failure.what();
    }
    together.arrive_and_drop();
  }

  const std::vector<int>& cpus_;
  std::size_t bytes_;
};

}  // namespace

std::uint64_t memory_bench_bytes(const ChecksumOptions& options) {
  return 2 * std::max(options.working_set_bytes, options.cpus.size() * bytes_per_cpu(options));
}

void measure_memory(const ChecksumOptions& options, const ChecksumObserver& observer,
                    const std::atomic<int>& stop_signal, ChecksumResult& result) {
  const auto stopped = [&] { return stop_signal.load(std::memory_order_relaxed) != 0 || result.mismatch; };
  const auto report = [&](const std::string& name, std::size_t threads, const std::vector<double>& rates) {
    if (rates.empty()) return;
    result.memory.push_back({name, threads, rates.size(), spread_of(rates)});
    observer.memory(result.memory.back());
  };
  {
    OneCore core(options.working_set_bytes);
    const auto operations = core.operations();
    std::vector<std::vector<double>> rates(operations.size());
    // In turns, so that a slow drift of the machine meets all of them alike.
    for (unsigned turn = 0; turn < options.repetitions; ++turn) {
      for (std::size_t i = 0; i < operations.size() && !stopped(); ++i) {
        const double rate = core.measure(operations[i], options.time_s, result);
        if (!result.mismatch) rates[i].push_back(rate);
      }
    }
    for (std::size_t i = 0; i < operations.size(); ++i) report(operations[i].name, 1, rates[i]);
  }
  // The ceilings of the MiniDAQ's data paths on all cores: zero-copy reads what it checks, the other path
  // copies it too.
  const std::vector<std::string> asked = {"non-temporal-copy", "crc32", "crc32-copy"};
  AllCores all(options.cpus, bytes_per_cpu(options));
  std::vector<std::vector<double>> rates(asked.size());
  for (unsigned turn = 0; turn < options.repetitions && !stopped(); ++turn) {
    const auto sums = all.measure(asked, options.time_s, result);
    for (std::size_t i = 0; i < asked.size() && !result.mismatch; ++i) rates[i].push_back(sums[i]);
  }
  for (std::size_t i = 0; i < asked.size(); ++i) report(asked[i], options.cpus.size(), rates[i]);
}

}  // namespace daqwriter
