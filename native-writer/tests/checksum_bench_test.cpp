// The microbenchmark: its arithmetic, that a wrong checksum cannot pass, and the real command.
#include "laboratory/checksum_bench.h"

#include <signal.h>

#include <thread>

#include "base/placement.h"
#include "base/status.h"
#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::ProcessResult;
using testing::run_daqwriter;
using testing::TempDir;

// Right until one call, wrong from then on.
class LyingAdlerEngine : public AdlerEngine {
 public:
  explicit LyingAdlerEngine(int right_calls) : right_calls_(right_calls) {}

 private:
  std::uint32_t run(std::uint32_t running, std::byte* destination,
                    std::span<const std::byte> source) override {
    const std::uint32_t value = honest_->update_and_copy(running, destination, source);
    return right_calls_-- > 0 ? value : value ^ 1;
  }

  int right_calls_;
  std::unique_ptr<AdlerEngine> honest_ = make_adler_engine(AdlerVariant::zlib, 1);
};

ChecksumOptions quick() {
  ChecksumOptions options;
  options.sizes = {1000, 300'000};
  options.threads = {1, 2};
  options.variants = {AdlerVariant::zlib, AdlerVariant::pool_cv, AdlerVariant::fused};
  options.cpus = allowed_cpus();
  options.repetitions = 2;
  options.time_s = 0.001;
  options.working_set_bytes = 1 << 20;
  return options;
}

// In a thread of its own, because the measurement pins the one that calls it.
ChecksumResult bench(const ChecksumOptions& options, const AdlerFactory& factory, int signal_number = 0) {
  const std::atomic<int> stop = signal_number;
  const ChecksumObserver silent = {[](const VariantRow&) {}, [](const MemoryRow&) {}};
  ChecksumResult result;
  std::thread([&] { result = run_checksum_bench(options, factory, silent, stop); }).join();
  return result;
}

TEST(ChecksumBench, SpreadIsTheMedianBetweenTheExtremes) {
  const Spread odd = spread_of({5, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 5);
  EXPECT_EQ(spread_of({4, 1, 2, 8}).median, 3);
}

TEST(ChecksumBench, MeasuresEveryCombinationOnceAndAgreesWithItself) {
  const ChecksumResult result = bench(quick(), make_adler_engine);
  EXPECT_FALSE(result.mismatch || result.interrupted) << result.error;
  ASSERT_EQ(result.variants.size(), 2u * (1 + 2 + 1));
  for (const VariantRow& row : result.variants) {
    EXPECT_EQ(row.repetitions, 2u);
    EXPECT_LE(row.bytes_per_s.min, row.bytes_per_s.median);
    EXPECT_LE(row.bytes_per_s.median, row.bytes_per_s.max);
    EXPECT_EQ(row.overhead_ns.has_value(), uses_threads(row.variant));
    ASSERT_EQ(row.serial_share.has_value(), row.threads > 1);
    if (row.serial_share) {
      const double s = *row.serial_share;
      EXPECT_NEAR(1 / (s + (1 - s) / row.threads), row.speed_up, 1e-9 * row.speed_up);
    }
  }
  ASSERT_EQ(result.memory.size(), 9u);
  EXPECT_EQ(result.memory.back().threads, allowed_cpus().size());
  EXPECT_TRUE(result.combine_ns);
}

TEST(ChecksumBench, KeepsEveryTurnBesideTheShareOfTheSameTurn) {
  const ChecksumResult result = bench(quick(), make_adler_engine);
  for (const VariantRow& row : result.variants) {
    ASSERT_EQ(row.ns.size(), 2u);
    ASSERT_EQ(row.share_ns.size(), 2u);
    EXPECT_EQ(spread_of(row.ns).median, row.ns_per_call);
    if (row.overhead_ns) {
      EXPECT_NEAR(*row.overhead_ns, row.ns_per_call - spread_of(row.share_ns).median, 1e-6);
    }
  }
}

TEST(ChecksumBench, WithoutMemoryOnlyTheVariantsAreMeasured) {
  ChecksumOptions options = quick();
  options.memory = false;
  options.working_set_bytes = 1ull << 60;  // which would be refused
  check_checksum_options(options);
  const ChecksumResult result = bench(options, make_adler_engine);
  EXPECT_FALSE(result.variants.empty());
  EXPECT_TRUE(result.memory.empty());
  EXPECT_TRUE(result.combine_ns);
}

TEST(ChecksumBench, AnEventCutAtEveryPlaceIsComparedForEveryVariantAndNumberOfThreads) {
  ChecksumOptions options = quick();
  options.splits_bytes = 200;
  const ChecksumResult result = bench(options, make_adler_engine);
  ASSERT_TRUE(result.splits);
  EXPECT_FALSE(result.mismatch);
  EXPECT_EQ(result.splits->bytes, 200u);
  EXPECT_EQ(result.splits->comparisons, 201u * (1 + 2 + 1));  // zlib and fused have one thread
}

TEST(ChecksumBench, AWrongCutIsFoundAndNothingIsMeasured) {
  ChecksumOptions options = quick();
  options.splits_bytes = 200;
  const AdlerFactory factory = [](AdlerVariant variant, unsigned threads, std::size_t smallest,
                                  const std::vector<int>& cpus) -> std::unique_ptr<AdlerEngine> {
    EXPECT_EQ(smallest, 0u);  // threads are used however short the parts are
    if (variant == AdlerVariant::fused)
      return std::make_unique<LyingAdlerEngine>(21);  // wrong in the eleventh cut
    return make_adler_engine(variant, threads, smallest, cpus);
  };
  const ChecksumResult result = bench(options, factory);
  ASSERT_TRUE(result.mismatch);
  EXPECT_EQ(result.mismatch->where, "fused, cut at byte 10");
  EXPECT_EQ(result.splits->comparisons, 201u * 3 + 10);
  EXPECT_TRUE(result.variants.empty());
  EXPECT_FALSE(result.combine_ns);
}

TEST(ChecksumBench, AWrongChecksumEndsTheMeasurementWithItsPlace) {
  const AdlerFactory factory = [](AdlerVariant variant, unsigned threads, std::size_t smallest,
                                  const std::vector<int>& cpus) -> std::unique_ptr<AdlerEngine> {
    if (variant == AdlerVariant::pool_cv && threads == 2) return std::make_unique<LyingAdlerEngine>(3);
    return make_adler_engine(variant, threads, smallest, cpus);
  };
  const ChecksumResult result = bench(quick(), factory);
  ASSERT_TRUE(result.mismatch);
  EXPECT_EQ(result.mismatch->where, "pool-cv");
  EXPECT_EQ(result.mismatch->bytes, 1000u);
  EXPECT_EQ(result.mismatch->threads, 2u);
  EXPECT_EQ(result.mismatch->actual, result.mismatch->expected ^ 1);
  EXPECT_TRUE(result.memory.empty());
}

TEST(ChecksumBench, AStopRequestBeforeTheStartMeasuresNothing) {
  const ChecksumResult result = bench(quick(), make_adler_engine, SIGINT);
  EXPECT_TRUE(result.interrupted);
  EXPECT_TRUE(result.variants.empty());
  EXPECT_FALSE(result.combine_ns);
}

class ChecksumCommandTest : public ::testing::Test {
 protected:
  TempDir directory;
  std::string json = directory.path("result.json");
};

TEST_F(ChecksumCommandTest, ReportsEveryVariant) {
  const ProcessResult result =
      run_daqwriter({"checksum", "--sizes", "4KiB,100KiB", "--threads", "2", "--time", "0.001",
                     "--repetitions", "3", "--working-set", "1MiB", "--json", json});
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_NE(result.error_text.find("pool-busy"), std::string::npos) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["status"], "complete");
  EXPECT_EQ(document["variants"].size(), 10u);
  EXPECT_EQ(document["variants"][1]["variant"], "thread-per-chunk");
  EXPECT_EQ(document["variants"][1]["bytes"], 4096);
  EXPECT_EQ(document["memory"].size(), 9u);
}

TEST_F(ChecksumCommandTest, KeepsToItsCpusAndLeavesOutWhatItIsTold) {
  const std::vector<int> all = allowed_cpus();
  const std::string first = std::to_string(all.front());
  const std::string both = all.size() > 1 ? first + "," + std::to_string(all.back()) : first;
  for (const std::string& cpus : {first, both}) {
    const ProcessResult result =
        run_daqwriter({"checksum", "--cpus", cpus, "--sizes", "4KiB", "--threads", "2", "--time", "0.001",
                       "--repetitions", "2", "--no-memory", "--splits", "64B", "--json", json});
    EXPECT_EQ(result.exit_code, 0) << result.error_text;
    const auto document = testing::read_json(json);
    EXPECT_EQ(document["parameters"]["cpus"].back(), all.front());  // the calling thread's
    EXPECT_EQ(document["parameters"]["cpus"].size(), cpus == first ? 1u : 2u);
    EXPECT_EQ(document["splits"]["comparisons"], 65 * 5);
    EXPECT_TRUE(document["memory"].empty());
    EXPECT_EQ(document["variants"][0]["ns_samples"].size(), 2u);
    EXPECT_EQ(document["variants"][0]["share_ns_samples"].size(), 2u);
  }
}

TEST_F(ChecksumCommandTest, ASignalEndsItInGoodOrder) {
  const ProcessResult result =
      run_daqwriter({"checksum", "--sizes", "4KiB", "--time", "0.1", "--repetitions", "500", "--json", json},
                    testing::signal_after(1500, SIGINT));
  EXPECT_EQ(result.exit_code, 130) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["status"], "interrupted");
  ASSERT_FALSE(document["variants"].empty());
  EXPECT_LT(document["variants"][0]["repetitions"], 500);
}

TEST_F(ChecksumCommandTest, RefusesBadOptionsByName) {
  const std::vector<std::vector<std::string>> cases = {
      {"--sizes", "4k"},         {"--sizes", "0"},
      {"--threads", "0"},        {"--threads", "5000"},
      {"--variants", "pool"},    {"--variants", "off"},
      {"--repetitions", "0"},    {"--time", "0"},
      {"--time", "nan"},         {"--time", "11"},
      {"--working-set", "4KiB"}, {"--working-set", "900TiB"},
      {"--splits", "2MiB"},      {"--cpus", "1023"},
      {"--cpus", "0,0"},         {"--json", directory.path("no/where")}};
  for (const auto& options : cases) {
    std::vector<std::string> arguments = {"checksum", "--json", json};
    if (options[0] == "--json") arguments.resize(1);
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult result = run_daqwriter(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.error_text;
    EXPECT_NE(result.error_text.find(options[0]), std::string::npos) << result.error_text;
    EXPECT_FALSE(fs::exists(json));
  }
}

}  // namespace
}  // namespace daqwriter
