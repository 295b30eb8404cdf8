// Framed records as several writers make them: every superchunk once, every block at its number, and writers
// that fail, hang or are interrupted while others run.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "format/record_format.h"
#include "io/engines.h"
#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::record;
using testing::record_in_full;
using testing::TempDir;
using testing::Verified;
using testing::verify;

// Lost and stored add up, and of a complete record nothing else is left.
void expect_account(const MiniDaqResult& r) {
  std::uint64_t lost = 0;
  for (const std::uint64_t each : r.lost_per_link) lost += each;
  EXPECT_LE(r.stored + lost, r.offered);
  const bool complete = r.status == RunStatus::complete;
  EXPECT_GE(r.stored + lost, complete ? r.offered : 0);
  for (const ApplicationResult& one : r.applications) {
    std::uint64_t stored = 0;
    for (const WriterResult& writer : one.writers) stored += writer.stored;
    EXPECT_EQ(stored, one.stored);
  }
}

class FramedWriterTest : public ::testing::Test {
 protected:
  MiniDaqOptions options(std::uint32_t writers, std::uint32_t links = 4) const {
    MiniDaqOptions o = testing::small_record(target);
    o.writers = writers;
    o.links = links;
    return o;
  }
  void expect_intact(const MiniDaqResult& r, const std::string& file, std::uint64_t stored) {
    EXPECT_EQ(r.status, RunStatus::complete) << r.error;
    expect_account(r);
    const Verified found = verify(directory, file);
    EXPECT_EQ(found.exit_code, 0) << found.json.dump(1);
    EXPECT_EQ(found.count("present"), stored);
    EXPECT_EQ(found.count("expected"), stored);
  }
  // Every block of a closed record has a good frame of its own number and holds its writer's links alone.
  void expect_blocks(const MiniDaqResult& r) {
    RecordHeader header;
    ASSERT_EQ(decode_record_header(testing::read_bytes(target, 0, 4096), header), BlockCheck::valid);
    const std::uint64_t blocks = (fs::file_size(target) - 8192) / header.block_bytes;
    EXPECT_LE(blocks, header.most_blocks);
    std::vector<std::uint64_t> made(r.applications[0].writers.size());
    for (std::uint64_t number = 0; number < blocks; ++number) {
      const auto data = testing::read_bytes(
          target, header.block_offset(number),
          std::min<std::uint64_t>(header.block_bytes, fs::file_size(target) - header.block_offset(number)));
      BlockFrame frame;
      ASSERT_EQ(decode_frame(data, frame), BlockCheck::valid) << number;
      EXPECT_FALSE(frame_mismatch(header, frame, number)) << *frame_mismatch(header, frame, number);
      const LinkRange& links = r.applications[0].writers.at(frame.writer).links;
      for (std::uint64_t k = 0; k < frame.superchunks; ++k) {
        SuperchunkHeader one;
        std::memcpy(&one, data.data() + 4096 + k * header.superchunk_bytes, sizeof one);
        ASSERT_TRUE(one.link >= links.first && one.link < links.end()) << number << ", link " << one.link;
      }
      ++made[frame.writer];
    }
    for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i], r.applications[0].writers[i].blocks);
  }
  void expect_refused(const MiniDaqOptions& o, const std::string& part) {
    try {
      plan_minidaq(o);
      FAIL() << "was allowed: " << part;
    } catch (const Refusal& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(part), std::string::npos) << refusal.what();
    }
    EXPECT_FALSE(fs::exists(target));
  }
  void expect_not_closed(const std::string& file, const MiniDaqResult& r) {
    const Verified found = verify(directory, file);
    EXPECT_EQ(found.exit_code, 3);
    EXPECT_EQ(found.json["complete_trailer"], false);
    EXPECT_EQ(found.json["faults"].back()["kind"], "incomplete") << found.json.dump(1);
    EXPECT_GE(found.count("present"), r.stored);
    EXPECT_EQ(found.count("duplicated") + found.count("out_of_order") + found.count("stale"), 0u);
  }

  TempDir directory;
  std::string target = directory.path("record");
};

TEST_F(FramedWriterTest, EverySuperchunkIsThereOnce) {
  for (const auto& [writers, links] : {std::pair{2u, 2u}, {2u, 5u}, {3u, 3u}, {3u, 4u}, {4u, 7u}}) {
    for (const bool zero_copy : {false, true}) {
      for (const Engine engine : kEngines) {
        MiniDaqOptions o = options(writers, links);
        o.zero_copy = zero_copy;
        o.block_bytes = 1 << 20;
        o.duration_s = 0.2;
        const MiniDaqResult r = record_in_full(o, engine_factory(engine));
        SCOPED_TRACE(std::to_string(writers) + " writers, " + std::to_string(links) + " links, " +
                     engine_name(engine));
        expect_intact(r, target, links * 400ull);
        expect_blocks(r);
        fs::remove(target);
      }
    }
  }
}

TEST_F(FramedWriterTest, UnpacedAndWithoutAnythingToSpare) {
  MiniDaqOptions o = options(3, 5);
  o.unpaced = true;
  o.most_bytes = 60'000'000;  // they end it, however long that takes
  o.duration_s = 60;
  const MiniDaqResult r = record(o);
  expect_intact(r, target, r.offered);
  EXPECT_GT(r.stored, 10'000u);
  expect_blocks(r);
}

TEST_F(FramedWriterTest, OneSuperchunkOfALinkIsABlock) {
  MiniDaqOptions o = options(3, 3);
  o.superchunk_rate_hz = 10;
  o.duration_s = 0.1;
  const MiniDaqResult r = record_in_full(o);
  expect_intact(r, target, 3);
  expect_blocks(r);
}

TEST_F(FramedWriterTest, AWriterWithoutASuperchunkMakesNoBlock) {
  MiniDaqOptions o = options(3, 3);
  o.superchunk_rate_hz = 2;  // the last link's first one is due at 0.33 s
  o.duration_s = 0.1;
  const MiniDaqResult r = record(o);
  expect_intact(r, target, 1);
  EXPECT_EQ(r.applications[0].writers[2].blocks, 0u);
}

TEST_F(FramedWriterTest, ABlockThatHoldsOneSuperchunk) {
  MiniDaqOptions o = options(2);
  o.superchunk_bytes = 8192;
  o.block_bytes = 12288;
  o.superchunk_rate_hz = 200;
  const MiniDaqResult r = record(o);
  expect_intact(r, target, 400);
  expect_blocks(r);
  EXPECT_EQ(r.padding_bytes, 0u);
  EXPECT_EQ(r.frame_bytes, 400u * 4096);
}

TEST_F(FramedWriterTest, OneWriterMakesAGaplessRecord) {
  MiniDaqOptions o = options(1);
  o.ring_bytes = 8 << 20;  // holds the whole record: a busy disk loses nothing
  const MiniDaqResult r = record(o);
  expect_intact(r, target, 4000);
  RecordHeader header;
  ASSERT_EQ(decode_record_header(testing::read_bytes(target, 0, 4096), header), BlockCheck::valid);
  EXPECT_FALSE(header.framed());
  EXPECT_EQ(testing::read_bytes(target, 16, 1)[0], std::byte{1});
  EXPECT_EQ(testing::read_bytes(target, 112, 16), std::vector<std::byte>(16));
  EXPECT_EQ(fs::file_size(target), record_bytes(4000, o.superchunk_bytes, 4096));
  EXPECT_EQ(r.frame_bytes, 0u);
}

TEST_F(FramedWriterTest, WhatCannotBeIsRefusedBeforeTheFirstByte) {
  expect_refused(options(5), "--writers 5: each has links of its own");
  MiniDaqOptions o = options(2);
  o.request_bytes = 100'000;
  o.trigger_rate_hz = 1;
  expect_refused(o, "--writers 2: only with --mode continuous");
  o = options(2);
  o.superchunk_bytes = 256 << 10;  // as large as a block
  o.ring_bytes = 16 << 20;
  expect_refused(o, "use at least 260KiB");
  o = options(2);
  o.zero_copy = true;  // a chunk has 348 KiB
  expect_refused(o, "or --data-path copy");
  o.zero_copy.reset();
  EXPECT_FALSE(plan_minidaq(o).zero_copy());
  EXPECT_NE(plan_minidaq(o).data_path_reason.find("with a block's frame more than --block-size"),
            std::string::npos);
  o.block_bytes = 1 << 20;
  EXPECT_NE(plan_minidaq(o).data_path_reason.find("unused"), std::string::npos);
  o.block_bytes = 8 << 20;
  o.ring_bytes = 8 << 20;
  EXPECT_TRUE(plan_minidaq(o).zero_copy());
  o.duration_s = 86'400;
  expect_refused(o, "B of header, frames, padding and trailer");
}

TEST_F(FramedWriterTest, WhatIsLostIsCountedByItsLink) {
  MiniDaqOptions o = options(2, 3);
  o.ring_bytes = 64 * 5568;
  const EngineFactory slow = [](unsigned depth) {
    return std::make_unique<testing::MeddlingEngine>(testing::aio_engine()(depth), 60'000'000);
  };
  const MiniDaqResult r = record(o, slow);
  ASSERT_GT(r.stored, 0u);
  ASSERT_LT(r.stored, 3000u);
  expect_intact(r, target, r.stored);
  EXPECT_EQ(verify(directory, target).json["lost_at_source"], 3000 - r.stored);
}

// The engines are made in the order of the writers.
EngineFactory with_second(const std::function<std::unique_ptr<IoEngine>(std::unique_ptr<IoEngine>)>& spoilt) {
  const auto made = std::make_shared<int>(0);
  return [spoilt, made](unsigned depth) -> std::unique_ptr<IoEngine> {
    auto engine = testing::aio_engine()(depth);
    return ++*made == 2 ? spoilt(std::move(engine)) : std::move(engine);
  };
}

// Takes requests, and from the n-th on gives no answers.
class SilentEngine : public IoEngine {
 public:
  SilentEngine(std::unique_ptr<IoEngine> inner, std::size_t from) : inner_(std::move(inner)), from_(from) {}
  std::string_view name() const override { return "silent"; }
  int submit(std::span<const IoRequest> requests) override {
    if (taken_ + requests.size() <= from_)
      taken_ += requests.size();
    else
      return static_cast<int>(requests.size());
    return inner_->submit(requests);
  }
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override {
    return inner_->reap(out, min_count, timeout_ns);
  }

 private:
  std::unique_ptr<IoEngine> inner_;
  std::size_t from_;
  std::size_t taken_ = 0;
};

TEST_F(FramedWriterTest, OneWriterThatFailsEndsAllAndClosesNothing) {
  MiniDaqOptions o = options(3);
  o.duration_s = 20;
  o.preallocate = false;
  const EngineFactory failing = with_second(
      [](auto inner) { return std::make_unique<testing::MeddlingEngine>(std::move(inner), 0, 5, EIO); });
  const MiniDaqResult r = record(o, failing);
  EXPECT_EQ(r.status, RunStatus::failed);
  EXPECT_EQ(r.error.rfind("writer 1: " + target, 0), 0u) << r.error;
  EXPECT_NE(r.error.find("EIO"), std::string::npos) << r.error;
  EXPECT_EQ(r.error.find("writer 0"), std::string::npos) << r.error;
  EXPECT_LT(r.total_ns, 15'000'000'000);
  EXPECT_GT(r.stored, 0u);
  expect_account(r);
  expect_not_closed(target, r);
}

TEST_F(FramedWriterTest, OneWriterThatHangsIsNamedAndClosesNothing) {
  const TempDir apart{testing::memory()};  // where no other call waits for a busy disk
  MiniDaqOptions o = options(2);
  o.target = apart.path("record");
  o.consent.memory_target = true;
  o.duration_s = 20;
  o.stall_limit_s = testing::kPatienceS;
  o.preallocate = false;
  const MiniDaqResult r =
      record(o, with_second([](auto inner) { return std::make_unique<SilentEngine>(std::move(inner), 5); }));
  EXPECT_EQ(r.status, RunStatus::failed);
  EXPECT_NE(r.error.find("writer 1: "), std::string::npos) << r.error;
  EXPECT_NE(r.error.find("have had no answer"), std::string::npos) << r.error;
  EXPECT_GT(r.unanswered_bytes, 0u);
  expect_account(r);
  expect_not_closed(o.target, r);
}

TEST_F(FramedWriterTest, AnInterruptionEndsAHungWriterToo) {
  MiniDaqOptions o = options(2);
  o.duration_s = 60;
  o.preallocate = false;
  std::atomic<int> signal{0};
  std::atomic<std::int64_t> asked{0};
  std::atomic<std::size_t> completed{0};
  const std::jthread asker([&] {
    testing::wait_for_count(completed, 2);  // then the writer is given more than it answers
    usleep(700'000);
    asked = monotonic_ns();
    signal = SIGINT;
  });
  const MiniDaqResult r =
      run_minidaq(o, plan_minidaq(o), with_second([&](auto inner) {
                    return std::make_unique<SilentEngine>(
                        std::make_unique<testing::CountedEngine>(std::move(inner), completed), 2);
                  }),
                  signal);
  EXPECT_LT(monotonic_ns() - asked, 20'000'000'000);
  EXPECT_EQ(r.status, RunStatus::interrupted);
  EXPECT_NE(r.error.find("writer 1: "), std::string::npos) << r.error;
  EXPECT_GT(r.unanswered_bytes, 0u);
  expect_account(r);
  expect_not_closed(target, r);
}

TEST_F(FramedWriterTest, AnInterruptionLeavesAClosedRecordWithoutHoles) {
  MiniDaqOptions o = options(3, 5);
  o.duration_s = 60;
  std::atomic<int> signal{0};
  std::atomic<std::size_t> completed{0};
  const std::jthread asker([&] {
    testing::wait_for_count(completed, 30);
    signal = SIGTERM;
  });
  const auto counted = [&](unsigned depth) {
    return std::make_unique<testing::CountedEngine>(testing::aio_engine()(depth), completed);
  };
  const MiniDaqResult r = run_minidaq(o, plan_minidaq(o), counted, signal);
  EXPECT_EQ(r.status, RunStatus::interrupted) << r.error;
  const std::uint64_t lost =
      std::accumulate(r.lost_per_link.begin(), r.lost_per_link.end(), std::uint64_t{0});
  EXPECT_EQ(r.stored + lost, r.offered);  // a busy machine may lose, and nothing else may be missing
  const Verified found = verify(directory, target);
  EXPECT_EQ(found.exit_code, 0) << found.json.dump(1);
  EXPECT_EQ(found.json["trailer_status"], "interrupted");
  EXPECT_EQ(found.count("present"), r.stored);
  expect_blocks(r);
}

TEST_F(FramedWriterTest, TwoTargetsWithTwoApplicationsOfTwoWriters) {
  MiniDaqOptions o = options(2, 3);
  o.further_targets = {directory.path("other")};
  o.applications = 2;
  o.ring_bytes = 8 << 20;  // holds the whole record: a busy disk loses nothing
  const MiniDaqResult r = record(o);
  ASSERT_EQ(r.applications.size(), 4u);
  for (const std::string& file : {target + ".0", target + ".1", directory.path("other.0")})
    expect_intact(r, file, 3000);
  expect_intact(r, directory.path("other.1"), 3000);
  EXPECT_EQ(r.stored, 12'000u);
  EXPECT_GT(r.joint_buffer.needed_bytes, 0u);
  EXPECT_LE(r.joint_buffer.needed_bytes, r.service_curve.needed_bytes());
  EXPECT_TRUE(r.joint_buffer.exact);
}

TEST_F(FramedWriterTest, ANullSinkTakesFromAllWriters) {
  MiniDaqOptions o = options(3);
  o.target.clear();
  o.null_sink = true;
  o.unpaced = true;
  o.zero_copy.reset();
  o.block_bytes = 8 << 20;
  const MiniDaqResult r = record(o, engine_factory(Engine::null));
  EXPECT_EQ(r.status, RunStatus::complete) << r.error;
  expect_account(r);
  for (const WriterResult& writer : r.applications[0].writers) EXPECT_GT(writer.stored, 0u);
}

TEST_F(FramedWriterTest, EachWriterHasItsOwnCpuWhereThereAreEnough) {
  MiniDaqOptions o = options(2);
  const std::vector<int> allowed = allowed_cpus();
  if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
  const std::vector<Placement> writers = plan_minidaq(o).applications[0].writers;
  ASSERT_EQ(writers.size(), 2u);
  EXPECT_NE(writers[0].writer_cpu, writers[1].writer_cpu);
  EXPECT_FALSE(writers[1].source_cpu);
  o.writer_cpus = {allowed[0]};
  const MiniDaqPlan asked = plan_minidaq(o);
  for (const Placement& each : asked.applications[0].writers) EXPECT_EQ(each.writer_cpu, allowed[0]);
}

}  // namespace
}  // namespace daqwriter
