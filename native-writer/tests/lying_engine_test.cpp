// The loads over an engine that is stuck or lies: each way ends in a failure that names it, or in right data;
// never in a hang, and never in a false "complete".
#include <cerrno>
#include <deque>
#include <set>

#include "base/memory.h"
#include "base/worker_thread.h"
#include "io/block_reader.h"
#include "io/block_writer.h"
#include "support.h"
#include "write/synthetic.h"

namespace daqwriter {
namespace {

using testing::TempDir;

// Several looks at a silence: a thread that a busy machine keeps from one of them has not waited so long
// (Silence::kMostBetweenLooksNs).
constexpr std::int64_t kShortNs = 500'000'000;

// Answers as the test says; what it took and did not answer stays owed.
class LyingEngine : public IoEngine {
 public:
  using Answers = std::vector<IoCompletion>;
  // Given the n-th request, all the answers that it ever gets.
  std::function<Answers(std::size_t n, const IoRequest&)> answer = good;
  std::int64_t delay_ns = 0;

  static IoCompletion right(const IoRequest& request) {
    return {request.tag, static_cast<std::int64_t>(bytes_of(request.pieces))};
  }
  static Answers good(std::size_t, const IoRequest& request) { return {right(request)}; }

  std::string_view name() const override { return "lying"; }
  int submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      for (const IoCompletion& each : answer(taken_++, request))
        due_.push_back({monotonic_ns() + delay_ns, each});
    }
    return static_cast<int>(requests.size());
  }
  int reap(std::span<IoCompletion> out, unsigned, std::int64_t timeout_ns) override {
    std::size_t count = 0;
    for (; count < out.size() && !due_.empty() && due_.front().first <= monotonic_ns(); due_.pop_front())
      out[count++] = due_.front().second;
    if (count == 0) sleep_until_monotonic_ns(monotonic_ns() + std::min<std::int64_t>(timeout_ns, 1'000'000));
    return static_cast<int>(count);
  }

 private:
  std::size_t taken_ = 0;
  std::deque<std::pair<std::int64_t, IoCompletion>> due_;
};

class LyingEngineTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBlock = 16384;

  BlockWriter writer() {
    BlockWriter::Config config;
    config.target = "the target";
    config.block_bytes = kBlock;
    config.alignment = 4096;
    config.depth = 2;
    config.stall_ns = kShortNs;
    config.stop = &stop;
    return BlockWriter(config, engine, ledger, memory.data());
  }
  // So many whole blocks, then the end.
  bool write(BlockWriter& blocks, std::size_t count) {
    const std::vector<std::byte> block(kBlock);
    for (std::size_t i = 0; i < count; ++i) {
      if (!blocks.append(block.data(), block.size())) break;
      ledger.note_superchunk(0, i, 0);
      blocks.submit_if_full();
    }
    return blocks.finish();
  }
  void expect_said(const BlockWriter& blocks, const std::string& part) {
    EXPECT_NE(blocks.error().text.find(part), std::string::npos) << blocks.error().text;
    EXPECT_NE(blocks.error().text.find("the target"), std::string::npos) << blocks.error().text;
  }

  LyingEngine engine;
  std::atomic<int> signal{0};
  StopClock stop{signal};
  DurabilityLedger ledger{1, 0, {[](std::int64_t) { return 0ull; }, [] { return 0ull; }}};
  Memory memory{BlockWriter::buffer_count(2) * kBlock, std::nullopt};
};

TEST_F(LyingEngineTest, NeverAnswers) {
  engine.answer = [](std::size_t n, const IoRequest& r) {
    return n < 3 ? LyingEngine::good(n, r) : LyingEngine::Answers{};
  };
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_EQ(blocks.error().error_number, ETIMEDOUT);
  expect_said(blocks,
              "2 writes of 32768 B together, the first at offset 49152, have had no answer for 0.5 s");
  expect_said(blocks, "--stall-limit");
  EXPECT_EQ(blocks.in_flight(), 2u);
  EXPECT_EQ(blocks.in_flight_bytes(), 2 * kBlock);
  EXPECT_EQ(ledger.durable_bytes(), 3 * kBlock);
  EXPECT_FALSE(blocks.interrupted());
}

TEST_F(LyingEngineTest, NeverAnswersAndIsInterrupted) {
  engine.answer = [](std::size_t, const IoRequest&) { return LyingEngine::Answers{}; };
  signal = 15 | kSecondSignal;
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_TRUE(blocks.interrupted());
  expect_said(blocks, "an interruption leaves; whether they are stored is unknown");
}

TEST_F(LyingEngineTest, OneSignalLeavesTheTargetAFewSeconds) {
  engine.answer = [](std::size_t, const IoRequest&) { return LyingEngine::Answers{}; };
  signal = 2;
  BlockWriter::Config config;
  config.block_bytes = kBlock;
  config.alignment = 4096;
  config.stop = &stop;
  BlockWriter blocks(config, engine, ledger, memory.data());
  const std::int64_t since = monotonic_ns();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_TRUE(blocks.interrupted());
  EXPECT_GE(monotonic_ns() - since, StopClock::kAnswerNs);
  EXPECT_LT(monotonic_ns() - since, 15'000'000'000);
}

TEST_F(LyingEngineTest, AnErrorWhileOthersNeverAnswer) {
  engine.answer = [](std::size_t n, const IoRequest& r) {
    return n == 0 ? LyingEngine::Answers{{r.tag, -EIO}} : LyingEngine::Answers{};
  };
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_EQ(blocks.error().error_number, EIO);  // the first error is the cause
  EXPECT_EQ(blocks.in_flight(), 1u);
}

TEST_F(LyingEngineTest, AnswersTwice) {
  engine.answer = [](std::size_t n, const IoRequest& r) {
    LyingEngine::Answers answers = LyingEngine::good(n, r);
    if (n == 4) answers.push_back(answers.front());
    return answers;
  };
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_EQ(blocks.error().error_number, EPROTO);
  expect_said(blocks, "not in flight");
}

// When the buffer is in use again: the second answer must not count for the request that has it now.
TEST_F(LyingEngineTest, AnswersTheOldRequestOfABufferInUseAgain) {
  std::optional<IoCompletion> first;
  engine.answer = [&](std::size_t n, const IoRequest& r) {
    if (n == 0) first = LyingEngine::right(r);
    const bool again = n > 0 && first && Requests::slot_of(r.tag) == Requests::slot_of(first->tag);
    return again ? LyingEngine::Answers{*first} : LyingEngine::good(n, r);
  };
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_EQ(blocks.error().error_number, EPROTO);
  EXPECT_LT(ledger.durable_bytes(), 20 * kBlock);
}

TEST_F(LyingEngineTest, AnswersShort) {
  std::uint64_t bytes = 0;
  engine.answer = [&](std::size_t, const IoRequest& r) {
    const auto part = std::min<std::size_t>(4096, bytes_of(r.pieces));
    bytes += part;
    return LyingEngine::Answers{{r.tag, static_cast<std::int64_t>(part)}};
  };
  BlockWriter blocks = writer();
  EXPECT_TRUE(write(blocks, 20)) << blocks.error().text;
  EXPECT_EQ(bytes, 20 * kBlock);
  EXPECT_EQ(ledger.superchunks_stored(), 20u);
}

TEST_F(LyingEngineTest, AnswersWithNothing) {
  engine.answer = [](std::size_t, const IoRequest& r) { return LyingEngine::Answers{{r.tag, 0}}; };
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  expect_said(blocks, "no progress");
}

TEST_F(LyingEngineTest, AnswersWithMoreThanItWasGiven) {
  engine.answer = [](std::size_t, const IoRequest& r) {
    return LyingEngine::Answers{{r.tag, static_cast<std::int64_t>(bytes_of(r.pieces)) + 512}};
  };
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_EQ(blocks.error().error_number, EPROTO);
  EXPECT_EQ(ledger.durable_bytes(), 0u);
}

TEST_F(LyingEngineTest, AnswersLateButInTime) {
  engine.delay_ns = kShortNs / 5;
  BlockWriter blocks = writer();
  EXPECT_TRUE(write(blocks, 20)) << blocks.error().text;
  EXPECT_EQ(ledger.superchunks_stored(), 20u);
}

TEST_F(LyingEngineTest, AnswersARequestThatNobodyMade) {
  for (const std::uint64_t tag : {std::uint64_t{3}, std::uint64_t{999}, UINT64_MAX}) {
    LyingEngine liar;
    liar.answer = [tag](std::size_t n, const IoRequest& r) {
      return n == 2 ? LyingEngine::Answers{{tag, 4096}, LyingEngine::right(r)} : LyingEngine::good(n, r);
    };
    engine = liar;
    DurabilityLedger fresh{1, 0, {[](std::int64_t) { return 0ull; }, [] { return 0ull; }}};
    BlockWriter::Config config;
    config.target = "the target";
    config.block_bytes = kBlock;
    config.alignment = 4096;
    config.stall_ns = kShortNs;
    BlockWriter blocks(config, engine, fresh, memory.data());
    const std::vector<std::byte> block(kBlock);
    for (std::size_t i = 0; i < 20 && blocks.append(block.data(), block.size()); ++i) blocks.submit_if_full();
    EXPECT_FALSE(blocks.finish());
    EXPECT_EQ(blocks.error().error_number, EPROTO) << tag;
  }
}

TEST_F(LyingEngineTest, AnErrorAndThenSuccess) {
  engine.answer = [](std::size_t n, const IoRequest& r) {
    return n == 3 ? LyingEngine::Answers{{r.tag, -EIO}, LyingEngine::right(r)} : LyingEngine::good(n, r);
  };
  BlockWriter blocks = writer();
  EXPECT_FALSE(write(blocks, 20));
  EXPECT_EQ(blocks.error().error_number, EIO);
  EXPECT_EQ(blocks.error().offset, 3 * kBlock);
  EXPECT_EQ(ledger.superchunks_stored(), 3u);
}

// The kernel takes requests only when the test says so: what it did not take stays the engine's, as
// io_uring's.
class HesitatingEngine : public IoEngine {
 public:
  // Before each call of the kernel: how many of `waiting` it takes.
  std::function<std::size_t(std::size_t waiting)> takes = [](std::size_t waiting) { return waiting; };
  std::vector<std::uint64_t> given;  // offsets, in the order in which the kernel got them
  bool newest_first = false;

  std::string_view name() const override { return "hesitating"; }
  int submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) waiting_.push_back(request);
    hand_over();
    return static_cast<int>(requests.size());
  }
  std::vector<std::uint64_t> unsubmitted() const override {
    std::vector<std::uint64_t> tags;
    for (const IoRequest& each : waiting_) tags.push_back(each.tag);
    return tags;
  }
  int reap(std::span<IoCompletion> out, unsigned, std::int64_t timeout_ns) override {
    hand_over();
    std::size_t count = 0;
    for (; count < out.size() && !taken_.empty(); ++count) {
      out[count] = newest_first ? taken_.back() : taken_.front();
      newest_first ? taken_.pop_back() : taken_.pop_front();
    }
    if (count == 0) sleep_until_monotonic_ns(monotonic_ns() + std::min<std::int64_t>(timeout_ns, 1'000'000));
    return static_cast<int>(count);
  }

 private:
  void hand_over() {
    for (std::size_t n = waiting_.empty() ? 0 : takes(waiting_.size()); n > 0; --n) {
      given.push_back(waiting_.front().offset);
      taken_.push_back(LyingEngine::right(waiting_.front()));
      waiting_.pop_front();
    }
  }
  std::deque<IoRequest> waiting_;
  std::deque<IoCompletion> taken_;
};

class HesitatingEngineTest : public LyingEngineTest {
 protected:
  BlockWriter hesitating_writer() {
    BlockWriter::Config config;
    config.target = "the target";
    config.block_bytes = kBlock;
    config.alignment = 4096;
    config.depth = 2;
    config.retry_ns = kShortNs;
    config.stall_ns = 100 * kShortNs;
    config.stop = &stop;
    return BlockWriter(config, kernel, ledger, memory.data());
  }
  HesitatingEngine kernel;
};

TEST_F(HesitatingEngineTest, TakesAPartAtATimeAndGetsEachBlockOnce) {
  std::size_t call = 0;
  kernel.takes = [&](std::size_t waiting) { return ++call % 3 == 0 ? std::min<std::size_t>(waiting, 1) : 0; };
  kernel.newest_first = true;
  BlockWriter blocks = hesitating_writer();
  EXPECT_TRUE(write(blocks, 50)) << blocks.error().text;
  std::vector<std::uint64_t> expected;
  for (std::size_t i = 0; i < 50; ++i) expected.push_back(i * kBlock);
  EXPECT_EQ(kernel.given, expected);
  EXPECT_EQ(ledger.superchunks_stored(), 50u);
}

TEST_F(HesitatingEngineTest, TakesNothingAnyMoreAndNothingIsReportedInFlight) {
  kernel.takes = [&](std::size_t waiting) { return kernel.given.size() < 5 ? waiting : 0; };
  BlockWriter blocks = hesitating_writer();
  const std::int64_t since = monotonic_ns();
  EXPECT_FALSE(write(blocks, 50));
  EXPECT_LT(monotonic_ns() - since, 50 * kShortNs);  // it did not wait for answers that nobody owes
  EXPECT_EQ(blocks.error().error_number, EAGAIN);
  EXPECT_EQ(blocks.error().offset, 5 * kBlock);
  expect_said(blocks, "submit refused");
  EXPECT_EQ(blocks.in_flight(), 0u);
  EXPECT_EQ(blocks.in_flight_bytes(), 0u);
  EXPECT_EQ(ledger.superchunks_stored(), 5u);
}

TEST_F(HesitatingEngineTest, AnInterruptionCountsOnlyWhatTheKernelHas) {
  kernel.takes = [&](std::size_t) -> std::size_t {
    signal = 15 | kSecondSignal;
    return 0;
  };
  BlockWriter blocks = hesitating_writer();
  EXPECT_FALSE(write(blocks, 50));
  EXPECT_TRUE(blocks.interrupted());
  EXPECT_EQ(blocks.in_flight(), 0u);
}

// The engine that was given up may not be called again, or it would hand over what counts as not stored.
TEST_F(HesitatingEngineTest, IsNotCalledAnyMoreOnceItIsGivenUp) {
  kernel.takes = [](std::size_t) { return 0; };
  BlockWriter blocks = hesitating_writer();
  EXPECT_FALSE(write(blocks, 50));
  kernel.takes = [](std::size_t waiting) { return waiting; };
  EXPECT_FALSE(blocks.poll(1'000'000));
  EXPECT_FALSE(blocks.finish());
  EXPECT_TRUE(kernel.given.empty());
}

// A stop of the whole process is no silence of the target.
TEST(Silence, CountsOneLookOfALongGap) {
  Silence silence;
  silence.restart(0);
  EXPECT_FALSE(silence.exceeds(1'000'000'000, 3'600'000'000'000));
  for (int i = 1; i < 10; ++i)
    EXPECT_FALSE(silence.exceeds(1'000'000'000, 3'600'000'000'000 + i * 100'000'000ll));
  EXPECT_TRUE(silence.exceeds(1'000'000'000, 3'600'000'000'000 + 1'000'000'001));
}

// The same through the whole commands: nothing is freed under the request that is owed, and the result is
// told.
class StuckLoadTest : public ::testing::Test {
 protected:
  static EngineFactory stuck_after(std::size_t requests) {
    return [requests](unsigned) {
      auto engine = std::make_unique<LyingEngine>();
      engine->answer = [requests](std::size_t n, const IoRequest& r) {
        return n < requests ? LyingEngine::good(n, r) : LyingEngine::Answers{};
      };
      return engine;
    };
  }
  const TempDir directory{testing::memory()};
  std::atomic<int> signal{0};
};

TEST_F(StuckLoadTest, ARecordFails) {
  static const MiniDaqOptions options = [this] {  // what is kept for the kernel refers to them
    MiniDaqOptions o = testing::small_record(directory.path("record"));
    o.consent.memory_target = true;
    o.stall_limit_s = testing::kPatienceS;
    return o;
  }();
  static const MiniDaqPlan plan = plan_minidaq(options);
  const MiniDaqResult result = run_minidaq(options, plan, stuck_after(2), signal);
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_NE(result.error.find("have had no answer for 5.5 s"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("the record is incomplete"), std::string::npos) << result.error;
  EXPECT_GT(result.unanswered_bytes, 0u);
  EXPECT_EQ(minidaq_json(options, plan, result)["bytes"]["unanswered"], result.unanswered_bytes);
  EXPECT_TRUE(anything_kept());
}

TEST_F(StuckLoadTest, AnInterruptedRecordIsInterrupted) {
  static const MiniDaqOptions options = [this] {
    MiniDaqOptions o = testing::small_record(directory.path("record"));
    o.consent.memory_target = true;
    o.unpaced = true;
    return o;
  }();
  static const MiniDaqPlan plan = plan_minidaq(options);
  const EngineFactory interrupted_at_the_first_write = [this](unsigned) {
    auto engine = std::make_unique<LyingEngine>();
    engine->answer = [this](std::size_t, const IoRequest&) {
      signal = 1 | kSecondSignal;
      return LyingEngine::Answers{};
    };
    return engine;
  };
  const MiniDaqResult result = run_minidaq(options, plan, interrupted_at_the_first_write, signal);
  EXPECT_EQ(result.status, RunStatus::interrupted) << result.error;
}

TEST_F(StuckLoadTest, AWriteFails) {
  static WriteOptions options;
  options.target = directory.path("file");
  options.bytes = 4 << 20;
  options.block_bytes = 64 << 10;
  options.stall_limit_s = testing::kPatienceS;
  options.consent.memory_target = true;
  static const WritePlan plan = plan_write(options);
  const WriteResult result = run_write(options, plan, stuck_after(5), signal);
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_EQ(result.ended_by, "error");
  EXPECT_EQ(result.bytes, 5u * (64 << 10));
  EXPECT_EQ(result.unanswered_bytes, 4u * (64 << 10));
  EXPECT_NE(result.error.find("have had no answer"), std::string::npos) << result.error;
}

class LyingReadsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBlock = 4096;

  std::unique_ptr<BlockReader> reader(LyingEngine::Answers (*answer)(std::size_t, const IoRequest&)) {
    auto engine = std::make_unique<LyingEngine>();
    engine->answer = answer;
    room = std::make_shared<ReadRoom>(2, kBlock, std::move(engine));
    BlockReader::Config config;
    config.target = "the target";
    config.end = 8 * kBlock;
    config.block_bytes = kBlock;
    config.depth = 2;
    config.stall_ns = kShortNs;
    config.stop = &stop;
    return std::make_unique<BlockReader>(config, room);
  }
  static std::string failure_of(BlockReader& blocks) {
    try {
      while (!blocks.next().empty()) continue;
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  }

  std::shared_ptr<ReadRoom> room;
  std::atomic<int> signal{0};
  StopClock stop{signal};
};

TEST_F(LyingReadsTest, NeverAnswersAndTheRoomIsKept) {
  auto blocks = reader([](std::size_t n, const IoRequest& r) {
    return n < 3 ? LyingEngine::good(n, r) : LyingEngine::Answers{};
  });
  const std::string failure = failure_of(*blocks);
  EXPECT_NE(
      failure.find("2 reads of 8192 B together, the first at offset 12288, have had no answer for 0.5 s"),
      std::string::npos)
      << failure;
  blocks.reset();
  EXPECT_GT(room.use_count(), 1);  // for ever
}

TEST_F(LyingReadsTest, NeverAnswersAndIsInterrupted) {
  auto blocks = reader([](std::size_t, const IoRequest&) { return LyingEngine::Answers{}; });
  signal = 15 | kSecondSignal;
  EXPECT_NE(failure_of(*blocks).find("in the time that an interruption leaves"), std::string::npos);
}

TEST_F(LyingReadsTest, AnswersTwice) {
  auto blocks = reader([](std::size_t, const IoRequest& r) {
    return LyingEngine::Answers{LyingEngine::right(r), LyingEngine::right(r)};
  });
  EXPECT_NE(failure_of(*blocks).find("not in flight"), std::string::npos);
}

TEST_F(LyingReadsTest, AnswersMoreThanWasAskedFor) {
  auto blocks = reader([](std::size_t, const IoRequest& r) {
    return LyingEngine::Answers{{r.tag, static_cast<std::int64_t>(bytes_of(r.pieces)) + 1}};
  });
  EXPECT_NE(failure_of(*blocks).find("not in flight or is shorter"), std::string::npos);
}

TEST_F(LyingReadsTest, WhatNobodyWantsAnyMoreIsWaitedForAndTheRoomIsFreeAgain) {
  auto blocks = reader(LyingEngine::good);
  dynamic_cast<LyingEngine&>(*room->engine).delay_ns = kShortNs / 5;
  EXPECT_EQ(blocks->next().size(), kBlock);
  blocks.reset();
  EXPECT_EQ(room.use_count(), 1);
}

// The kernel takes a few, then nothing: nothing of the rest is called written, or in flight.
TEST_F(StuckLoadTest, AWriteThatTheKernelDoesNotTakeFails) {
  WriteOptions options;
  options.target = directory.path("file");
  options.consent.memory_target = true;
  options.bytes = 4 << 20;
  options.block_bytes = 64 << 10;
  const WritePlan plan = plan_write(options);
  const WriteResult result = run_write(
      options, plan,
      [](unsigned) {
        auto engine = std::make_unique<HesitatingEngine>();
        engine->takes = [raw = engine.get()](std::size_t waiting) {
          return std::min(waiting, 7 - std::min<std::size_t>(raw->given.size(), 7));
        };
        return engine;
      },
      signal);
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_EQ(result.bytes, 7u * (64 << 10));
  EXPECT_EQ(result.unanswered_bytes, 0u);
  EXPECT_NE(result.error.find("submit refused"), std::string::npos) << result.error;
}

TEST_F(StuckLoadTest, AWriteOfWhichTheKernelTakesAPartAtATimeIsWhole) {
  WriteOptions options;
  options.target = directory.path("file");
  options.consent.memory_target = true;
  options.bytes = 4 << 20;
  options.block_bytes = 64 << 10;
  options.zeros = true;  // the engine stores nothing, and holes are zeros
  const WritePlan plan = plan_write(options);
  std::vector<std::uint64_t> given;
  const WriteResult result = run_write(
      options, plan,
      [&](unsigned) {
        auto engine = std::make_unique<HesitatingEngine>();
        engine->newest_first = true;
        engine->takes = [&, raw = engine.get(), call = 0](std::size_t waiting) mutable {
          given = raw->given;
          return ++call % 2 == 0 ? std::min<std::size_t>(waiting, 1) : 0;
        };
        return engine;
      },
      signal);
  EXPECT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.bytes, 4u << 20);
  EXPECT_EQ(std::set<std::uint64_t>(given.begin(), given.end()).size(), given.size());  // none twice
}

}  // namespace
}  // namespace daqwriter
