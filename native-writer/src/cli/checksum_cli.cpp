// Promise: the options of `daqwriter checksum`, its table for people and its result in the form of
// inventory/schemas/daqwriter-checksum.schema.json.
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numeric>

#include "base/placement.h"
#include "base/units.h"
#include "cli/cli.h"
#include "laboratory/checksum_bench.h"
#include "report/report_json.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBytesPerGb = 1e9;

void set_defaults(ChecksumOptions& o) {
  constexpr std::uint64_t kFirst = 4096;
  constexpr std::uint64_t kLast = 64ull << 20;
  constexpr std::size_t kMostThreads = 4;
  for (std::uint64_t size = kFirst; size < kLast; size *= 4) o.sizes.push_back(size);
  o.sizes.push_back(kLast);
  o.cpus = allowed_cpus();
  o.threads.resize(std::min(o.cpus.size(), kMostThreads));
  std::iota(o.threads.begin(), o.threads.end(), 1u);
  o.variants = {AdlerVariant::zlib, AdlerVariant::thread_per_chunk, AdlerVariant::pool_cv,
                AdlerVariant::pool_busy, AdlerVariant::fused};
}

// A list whose present values are the default and whose elements our own parsers read.
template <typename Value, typename Parse, typename Format>
void add_list(CLI::App& app, const std::string& name, std::vector<Value>& values, const Parse& parse,
              const Format& format, const std::string& help) {
  const auto read = [&values, name, parse](const std::vector<std::string>& texts) {
    values.clear();
    try {
      for (const std::string& text : texts) values.push_back(parse(text));
    } catch (const Refusal& refusal) {
      throw Refusal(std::string(refusal.what()).starts_with(name) ? refusal.what()
                                                                  : name + ": " + refusal.what());
    }
  };
  std::vector<std::string> shown;
  std::transform(values.begin(), values.end(), std::back_inserter(shown), format);
  app.add_option_function<std::vector<std::string>>(name, read, help)
      ->delimiter(',')
      ->type_name("LIST")
      ->default_str(joined(shown, ","));
}

AdlerVariant parse_measured_variant(const std::string& name) {
  const AdlerVariant variant = parse_adler_variant(name);
  if (variant == AdlerVariant::off) throw Refusal("off computes nothing that could be compared with zlib");
  return variant;
}

unsigned parse_threads(const std::string& text) {
  return parse_within(Bounds<unsigned>{"--threads", 1, 1024, "with the calling thread"}, text);
}

// In the order of the command line: the calling thread's, then the others'. The measurement keeps them the
// other way round, as allowed_cpus() gives them: a machine's first CPUs see most of its interrupts.
void add_checksum_cpus(CLI::App& app, ChecksumOptions& o) {
  const auto read = [&o](std::vector<int> cpus) {
    check_cpus(allowed_cpus(), cpus, "--cpus");
    std::reverse(cpus.begin(), cpus.end());
    o.cpus = cpus;
  };
  app.add_option_function<std::vector<int>>(
         "--cpus", read,
         "CPU of the calling thread, then of the others in turn, e.g. 0,2,4; default: all, from the last on")
      ->delimiter(',')
      ->type_name("LIST");
}

void add_checksum_options(CLI::App& app, ChecksumOptions& o) {
  const auto parse_bytes = [](const std::string& text) {
    return parse_within(Bounds<std::uint64_t>{"--sizes", 1, bounds::kTiB}, text);
  };
  add_list(app, "--sizes", o.sizes, parse_bytes, format_size, "Bytes per call, comma-separated");
  add_list(
      app, "--threads", o.threads, parse_threads, [](unsigned threads) { return std::to_string(threads); },
      "Threads of the variants that use them, the calling one included");
  add_list(app, "--variants", o.variants, parse_measured_variant, adler_variant_name,
           "Ways of computing adler32");
  add_number(app, {"--repetitions", 1, 1'000'000}, o.repetitions, "Measurements of each combination");
  add_number(app, {"--time", 1e-6, 10, "seconds"}, o.time_s, "Length of each measurement, seconds");
  add_number(app, bounds::kSmallestParallel, o.smallest_parallel_bytes,
             "Smaller events are left to the calling thread; default: none are, to show the crossover");
  add_number(app, {"--working-set", 1 << 20, bounds::kTiB}, o.working_set_bytes,
             "Memory read, and written, from DRAM by one core");
  app.add_flag("!--no-memory", o.memory, "Leave out the checksums and copies from DRAM");
  add_number(
      app, {"--splits", 0, 1 << 20}, o.splits_bytes,
      "First cut an event of so many bytes at every place and compare each variant with zlib; default: "
      "do not");
  add_checksum_cpus(app, o);
  add_reporting(app, o, false);
}

// The table's columns have fixed widths, which streams make hard to read.
template <typename... Values>
void print(const char* format, Values... values) {
  std::fprintf(stderr, format, values...);
}

void print_variant(const VariantRow& row) {
  print("%-17s %8s %3u %8.2f (%.2f to %.2f) %12.0f ns  x%.2f", adler_variant_name(row.variant).c_str(),
        format_size(row.bytes).c_str(), row.threads, row.bytes_per_s.median / kBytesPerGb,
        row.bytes_per_s.min / kBytesPerGb, row.bytes_per_s.max / kBytesPerGb, row.ns_per_call, row.speed_up);
  if (row.overhead_ns) print("  overhead %.0f ns", *row.overhead_ns);
  if (row.serial_share) print("  serial share %.2f", *row.serial_share);
  print("\n");
}

void print_memory(const MemoryRow& row) {
  print("%-17s %8s %3zu %8.2f (%.2f to %.2f)\n", row.operation.c_str(), "DRAM", row.threads,
        row.bytes_per_s.median / kBytesPerGb, row.bytes_per_s.min / kBytesPerGb,
        row.bytes_per_s.max / kBytesPerGb);
}

std::string status_of(const ChecksumResult& r) {
  if (r.mismatch) return "damaged";
  if (!r.error.empty()) return "failed";
  return r.interrupted ? "interrupted" : "complete";
}

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

Json checksum_json(const ChecksumOptions& o, const ChecksumResult& r) {
  Json variants = Json::array();
  for (const VariantRow& row : r.variants) {
    variants.push_back({{"variant", adler_variant_name(row.variant)},
                        {"bytes", row.bytes},
                        {"threads", row.threads},
                        {"repetitions", row.repetitions},
                        {"bytes_per_s", spread_json(row.bytes_per_s)},
                        {"ns_per_call", row.ns_per_call},
                        {"overhead_ns", or_null(row.overhead_ns)},
                        {"speed_up", row.speed_up},
                        {"serial_share", or_null(row.serial_share)},
                        {"ns_samples", row.ns},
                        {"share_ns_samples", row.share_ns}});
  }
  Json memory = Json::array();
  for (const MemoryRow& row : r.memory) {
    memory.push_back({{"operation", row.operation},
                      {"threads", row.threads},
                      {"repetitions", row.repetitions},
                      {"bytes_per_s", spread_json(row.bytes_per_s)}});
  }
  Json splits = nullptr;
  if (r.splits) splits = {{"bytes", r.splits->bytes}, {"comparisons", r.splits->comparisons}};
  Json mismatch = nullptr;
  if (r.mismatch) {
    mismatch = {{"where", r.mismatch->where},
                {"bytes", r.mismatch->bytes},
                {"threads", r.mismatch->threads},
                {"expected", r.mismatch->expected},
                {"actual", r.mismatch->actual}};
  }
  Json all = document_json("daqwriter", "checksum", DAQWRITER_VERSION);
  all.update({{"status", status_of(r)},
              {"error", or_null(r.error)},
              {"mismatch", mismatch},
              {"parameters",
               {{"repetitions", o.repetitions},
                {"time_s", o.time_s},
                {"smallest_parallel_bytes", o.smallest_parallel_bytes},
                {"working_set_bytes", o.working_set_bytes},
                {"cpus", o.cpus},
                {"zlib_version", zlibVersion()}}},
              {"splits", splits},
              {"combine_ns", r.combine_ns ? spread_json(*r.combine_ns) : Json(nullptr)},
              {"variants", variants},
              {"memory", memory}});
  return all;
}

ExitCode run_checksum_command(const ChecksumOptions& o, const std::atomic<int>& stop_signal) {
  check_checksum_options(o);
  print("%-17s %8s %3s %8s\n", "", "per call", "thr", "GB/s, median (min to max)");
  const ChecksumResult result =
      run_checksum_bench(o, make_adler_engine, {print_variant, print_memory}, stop_signal);
  write_json(o.json_path, checksum_json(o, result));
  if (result.splits)
    print("%llu cuts of %s compared with zlib\n", static_cast<unsigned long long>(result.splits->comparisons),
          format_size(result.splits->bytes).c_str());
  if (result.combine_ns) print("adler32_combine %.1f ns\n", result.combine_ns->median);
  if (result.mismatch)
    print("%s, %s, %u threads: %08x instead of %08x, which is zlib's\n", result.mismatch->where.c_str(),
          format_size(result.mismatch->bytes).c_str(), result.mismatch->threads, result.mismatch->actual,
          result.mismatch->expected);
  if (!result.error.empty()) print("error: %s\n", result.error.c_str());
  print("checksum %s\n", status_of(result).c_str());
  if (result.mismatch) return ExitCode::damaged;
  if (!result.error.empty()) return ExitCode::failed;
  return result.interrupted ? ExitCode::interrupted : ExitCode::complete;
}

}  // namespace

ParsedCommand add_checksum(CLI::App& parent) {
  const auto options = std::make_shared<ChecksumOptions>();
  set_defaults(*options);
  CLI::App* app = parent.add_subcommand(
      "checksum", "Measure adler32 by several threads, and copies with checksums; writes to no drive");
  add_checksum_options(*app, *options);
  return {app, [options](const std::atomic<int>& stop_signal) {
            return run_checksum_command(*options, stop_signal);
          }};
}

}  // namespace daqwriter
