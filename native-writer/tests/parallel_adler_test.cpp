// Every variant is zlib's adler32, bit for bit, for every length, split, number of threads and reuse.
#include "checksum/parallel_adler.h"

#include <zlib.h>

#include <random>
#include <thread>

#include "base/placement.h"
#include "base/status.h"
#include "checksum/checksum.h"
#include "support.h"

namespace daqwriter {
namespace {

using testing::random_bytes;
using ByteSpan = std::span<const std::byte>;

std::uint32_t by_zlib(std::uint32_t running, ByteSpan data) {
  return static_cast<std::uint32_t>(
      adler32_z(running, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

class ParallelAdlerTest : public ::testing::TestWithParam<std::tuple<AdlerVariant, unsigned>> {
 protected:
  std::unique_ptr<AdlerEngine> make(std::size_t smallest) const {
    return make_adler_engine(std::get<0>(GetParam()), std::get<1>(GetParam()), smallest);
  }
};

std::string name_of(const ::testing::TestParamInfo<ParallelAdlerTest::ParamType>& info) {
  std::string name = adler_variant_name(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(
    Variants, ParallelAdlerTest,
    ::testing::Combine(::testing::Values(AdlerVariant::zlib, AdlerVariant::thread_per_chunk,
                                         AdlerVariant::pool_cv, AdlerVariant::pool_busy, AdlerVariant::fused),
                       ::testing::Values(1u, 2u, 3u, 7u)),
    name_of);

TEST_P(ParallelAdlerTest, IsZlibsForEveryLength) {
  const auto data = random_bytes(5064);
  // Never below the threshold; the threads of thread-per-chunk are dear, so it takes larger steps.
  const auto engine = make(0);
  const bool dear = std::get<0>(GetParam()) == AdlerVariant::thread_per_chunk;
  for (std::size_t length = 0; length <= 5000; length += dear && length > 300 ? 61 : 1) {
    const ByteSpan part(data.data() + length % 64, length);
    const auto running = static_cast<std::uint32_t>(length);
    ASSERT_EQ(engine->update(running, part), by_zlib(running, part)) << length;
  }
}

TEST_P(ParallelAdlerTest, IsTheSameForEverySplit) {
  const auto data = random_bytes(300);
  const ByteSpan all(data);
  const auto engine = make(0);
  for (std::size_t split = 0; split <= all.size(); ++split) {
    const std::uint32_t first = engine->update(1, all.first(split));
    ASSERT_EQ(engine->update(first, all.subspan(split)), by_zlib(1, all)) << split;
  }
}

TEST_P(ParallelAdlerTest, CopiesLargeEventsExactlyWhereverTheyLie) {
  constexpr std::byte kGuard{0xa5};
  constexpr std::size_t kMargin = 64;
  const auto data = random_bytes(1'000'000);
  const auto engine = make(70'000);
  std::mt19937_64 random(std::get<1>(GetParam()));
  std::uint32_t running = 1;
  for (int turn = 0; turn < 40; ++turn) {
    const std::size_t bytes = random() % (turn % 2 == 0 ? 990'000 : 140'000);
    const std::size_t from = random() % kMargin;
    const std::size_t to = kMargin + random() % kMargin;
    std::vector<std::byte> destination(bytes + 3 * kMargin, kGuard);
    std::vector<std::byte> expected = destination;
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(to));
    const ByteSpan source(data.data() + from, bytes);
    const std::uint32_t value = by_zlib(running, source);
    running = engine->update_and_copy(running, destination.data() + to, source);
    publish_streamed();
    ASSERT_EQ(running, value) << bytes;
    ASSERT_EQ(destination, expected) << bytes << " B from +" << from << " to +" << to;
  }
}

TEST_P(ParallelAdlerTest, DoesNotOverflow) {
  const std::vector<std::byte> data(1 << 20, std::byte{0xff});
  constexpr std::uint32_t kHighest = 65520u << 16 | 65520u;
  EXPECT_EQ(make(0)->update(kHighest, data), by_zlib(kHighest, data));
}

// A stream's thread owns its engine; several streams work at once.
TEST_P(ParallelAdlerTest, EnginesDoNotDisturbEachOther) {
  const auto data = random_bytes(200'000);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> streams;
  for (std::size_t stream = 0; stream < 3; ++stream) {
    streams.emplace_back([&, stream] {
      const auto engine = make(0);
      for (std::size_t turn = 0; turn < 50; ++turn) {
        const ByteSpan event = ByteSpan(data).subspan(stream * 1000 + turn * 77, 100'000 + turn);
        if (engine->update(1, event) != by_zlib(1, event)) ++wrong;
      }
    });
  }
  for (std::thread& stream : streams) stream.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ParallelAdlerTest, EndsInGoodOrderWithoutAnyWork) {
  for (int turn = 0; turn < 20; ++turn) EXPECT_NE(make(0), nullptr);
}

TEST(AdlerEngine, OffCopiesAndLeavesTheRunningValue) {
  const auto data = random_bytes(9999);
  std::vector<std::byte> destination(data.size());
  const auto engine = make_adler_engine(AdlerVariant::off, 2);
  EXPECT_EQ(engine->update_and_copy(42, destination.data(), data), 42u);
  publish_streamed();
  EXPECT_EQ(destination, data);
}

TEST(AdlerEngine, IsNamedOrRefused) {
  for (const std::string_view name : kAdlerVariantNames)
    EXPECT_EQ(adler_variant_name(parse_adler_variant(name)), name);
  EXPECT_THROW(parse_adler_variant("pool"), Refusal);
  EXPECT_THROW(make_adler_engine(AdlerVariant::pool_cv, 0), Refusal);
}

TEST_P(ParallelAdlerTest, PinsItsSlavesAndNeverTheMaster) {
  const std::vector<int> before = allowed_cpus();
  const auto engine =
      make_adler_engine(std::get<0>(GetParam()), std::get<1>(GetParam()), 0, {before.front()});
  const auto data = random_bytes(1000);
  for (int turn = 0; turn < 200; ++turn) EXPECT_EQ(engine->update(1, data), by_zlib(1, data));
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(AdlerEngine, ACpuThatDoesNotExistFails) {
  EXPECT_THROW(make_adler_engine(AdlerVariant::pool_cv, 3, 0, {1023}), Failure);
}

}  // namespace
}  // namespace daqwriter
