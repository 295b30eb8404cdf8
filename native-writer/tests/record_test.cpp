// Whole records on the real disk of the build tree, direct I/O included.
#include <cerrno>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/status.h"
#include "format/record_format.h"
#include "io/null_engine.h"
#include "support.h"

namespace daqwriter {
namespace {

using testing::MeddlingEngine;
using testing::record;
using testing::record_in_full;
using testing::small_record;
using testing::TempDir;
using testing::verify;

std::uint64_t lost(const MiniDaqResult& result) {
  return std::accumulate(result.lost_per_link.begin(), result.lost_per_link.end(), std::uint64_t{0});
}

class RecordTest : public ::testing::TestWithParam<std::string> {
 protected:
  TempDir directory;
  std::string target = directory.path("record");
};

TEST_F(RecordTest, IsCompleteAccountedForAndVerifies) {
  const MiniDaqResult result = record_in_full(small_record(target));
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.offered, 3000u);
  EXPECT_EQ(result.stored, 3000u);
  EXPECT_EQ(lost(result), 0u);
  EXPECT_EQ(result.payload_bytes, 3000u * 5568);
  EXPECT_EQ(result.written_bytes, std::filesystem::file_size(target));
  EXPECT_EQ(result.written_bytes, record_bytes(3000, 5568, 4096));
  EXPECT_EQ(result.padding_bytes, 4096 - 3000 * 5568 % 4096);
  EXPECT_EQ(result.latency_ns.count(), 3000u);
  EXPECT_GT(result.latency_ns.min(), 0);
  EXPECT_EQ(result.write_latency_ns.count(), (3000 * 5568 + 262143) / 262144);
  EXPECT_GT(result.service_curve.needed_bytes(), 0u);
  EXPECT_GE(result.total_ns, 500'000'000);
  const auto& series = result.series;
  EXPECT_EQ(std::accumulate(series.offered_bytes.begin(), series.offered_bytes.end(), 0ull), 3000u * 5568);
  EXPECT_EQ(std::accumulate(series.stored_bytes.begin(), series.stored_bytes.end(), 0ull), 3000u * 5568);
  EXPECT_EQ(series.backlog_bytes.back(), 0u);

  const testing::Verified verified = verify(directory, target);
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_EQ(verified.json["status"], "intact");
  EXPECT_EQ(verified.count("present"), 3000u);
  EXPECT_EQ(verified.count("expected"), 3000u);
  EXPECT_EQ(verified.json["complete_trailer"], true);
  EXPECT_EQ(verified.json["record_id"], record_id_text(result.record_id));
}

struct Shape {
  std::uint32_t superchunk_bytes;
  std::uint64_t block_bytes;
  ChecksumKind checksum;
  bool preallocate;
};

class RecordShapeTest : public ::testing::TestWithParam<Shape> {};

TEST_P(RecordShapeTest, Verifies) {
  const TempDir directory;
  MiniDaqOptions options = small_record(directory.path("record"));
  options.superchunk_bytes = GetParam().superchunk_bytes;
  options.block_bytes = GetParam().block_bytes;
  options.checksum = GetParam().checksum;
  options.preallocate = GetParam().preallocate;
  options.duration_s = 0.2;
  options.ring_bytes = 16 << 20;  // holds it all: 4 KiB blocks may be too slow for a shared disk
  const MiniDaqResult result = record(options);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  const testing::Verified verified = verify(directory, options.target);
  EXPECT_EQ(verified.exit_code, 0) << verified.json.dump();
  EXPECT_EQ(verified.count("present"), 1200u);
  EXPECT_EQ(std::filesystem::file_size(options.target), record_bytes(1200, options.superchunk_bytes, 4096));
}

INSTANTIATE_TEST_SUITE_P(Shapes, RecordShapeTest,
                         ::testing::Values(Shape{5568, 1 << 20, ChecksumKind::adler32, true},
                                           Shape{5568, 4096, ChecksumKind::crc32, true},
                                           Shape{4096, 65536, ChecksumKind::crc32, false},
                                           Shape{65, 65536, ChecksumKind::crc32, true},
                                           Shape{7001, 12288, ChecksumKind::off, false},
                                           Shape{20000, 4096, ChecksumKind::adler32, true}),
                         [](const auto& test) {
                           const Shape& shape = test.param;
                           return "superchunk" + std::to_string(shape.superchunk_bytes) + "_block" +
                                  std::to_string(shape.block_bytes) + "_" + checksum_name(shape.checksum) +
                                  (shape.preallocate ? "_preallocated" : "_growing");
                         });

TEST_F(RecordTest, OverloadLosesAndEverythingAddsUpPerLink) {
  MiniDaqOptions options = small_record(target);
  options.ring_bytes = 8 * 5568;
  const MiniDaqResult result = record(options, [](unsigned depth) {
    return std::make_unique<MeddlingEngine>(testing::aio_engine()(depth), 30'000'000);
  });
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.offered, 3000u);
  EXPECT_EQ(result.due, 3000u);  // the source was not to blame
  EXPECT_GT(lost(result), 0u);
  EXPECT_EQ(result.stored + lost(result), result.offered);
  EXPECT_GT(result.busy.count(), 0u);
  EXPECT_GE(result.service_curve.needed_bytes(), lost(result) * 5568);

  RecordTrailer trailer;
  const std::uint64_t end = std::filesystem::file_size(target);
  ASSERT_EQ(decode_trailer(testing::read_bytes(target, end - 4096, 4096), trailer), BlockCheck::valid);
  for (std::size_t link = 0; link < 3; ++link) {
    EXPECT_EQ(trailer.links[link].stored + trailer.links[link].lost, 1000u);
    EXPECT_EQ(trailer.links[link].lost, result.lost_per_link[link]);
  }
  const testing::Verified verified = verify(directory, target);
  EXPECT_EQ(verified.exit_code, 0) << verified.json.dump();
  EXPECT_EQ(verified.json["lost_at_source"], lost(result));
  EXPECT_EQ(verified.count("missing"), 0u);
}

TEST_F(RecordTest, DrainsWhatIsInTheRingsWhenTheSourceHasEnded) {
  MiniDaqOptions options = small_record(target);
  options.ring_bytes = 8 << 20;  // holds the whole record
  const MiniDaqResult result = record(options, [](unsigned depth) {
    return std::make_unique<MeddlingEngine>(testing::aio_engine()(depth), 20'000'000);
  });
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(lost(result), 0u);
  EXPECT_EQ(result.stored, 3000u);
  EXPECT_GT(result.drained_ns - result.record_ns,
            200'000'000);  // 64 blocks of 20 ms are longer than the half second of the source
  EXPECT_EQ(verify(directory, target).exit_code, 0);
}

TEST_F(RecordTest, WhatTheSourceNoLongerOfferedIsNotBacklog) {
  MiniDaqOptions options = small_record(target);
  options.duration_s = 60;
  options.ring_bytes = 8 << 20;
  options.block_bytes = 4 << 20;
  std::atomic<int> stop{0};
  options.line_protocol_path = directory.path("lines");
  std::thread interrupter([&] {
    testing::wait_for_lines(options.line_protocol_path, 3);
    stop = 15;
  });
  const MiniDaqResult result = run_minidaq(
      options, plan_minidaq(options),
      [](unsigned depth) {
        return std::make_unique<MeddlingEngine>(testing::aio_engine()(depth), 300'000'000);
      },
      stop);
  interrupter.join();
  EXPECT_EQ(result.status, RunStatus::interrupted);
  EXPECT_EQ(result.stored, result.offered);
  EXPECT_GT(result.offered, 0u);
  EXPECT_LE(result.service_curve.needed_bytes(), result.offered * 5568);
}

TEST_F(RecordTest, ATargetThatIsRefusedAfterItsCreationIsRemoved) {
  const TargetPlan plan = plan_target(target, {});
  EXPECT_THROW(Target(plan, 1ull << 60, true), Refusal);  // no disk has room to preallocate an exbibyte
  EXPECT_FALSE(std::filesystem::exists(target));
  { const Target abandoned(plan, 4096, true); }
  EXPECT_FALSE(std::filesystem::exists(target));
  {
    Target kept(plan, 4096, true);
    kept.keep();
  }
  EXPECT_TRUE(std::filesystem::exists(target));
}

TEST_F(RecordTest, AnIoErrorFailsTheRecordWithAnExactAccount) {
  MiniDaqOptions options = small_record(target);
  options.ring_bytes = 8 << 20;
  const MiniDaqResult result = record(options, [](unsigned depth) {
    return std::make_unique<MeddlingEngine>(testing::aio_engine()(depth), 0, 5, EIO);
  });
  EXPECT_EQ(result.status, RunStatus::failed);
  for (const std::string& part :
       {target, std::string("offset"), std::string("EIO"), std::to_string(result.stored)}) {
    EXPECT_NE(result.error.find(part), std::string::npos) << result.error;
  }
  EXPECT_GT(result.stored, 0u);
  EXPECT_LT(result.stored, result.offered);
  // The block that failed leaves a hole; what is stored without a gap is really there, and no trailer vouches
  // for it.
  const testing::Verified verified = verify(directory, target);
  EXPECT_EQ(verified.exit_code, 3);
  EXPECT_EQ(verified.json["complete_trailer"], false);
  EXPECT_GE(verified.count("present"), result.stored);
  EXPECT_EQ(verified.json["faults"].back()["kind"], "incomplete");
}

TEST_F(RecordTest, AStopSignalClosesTheRecordProperly) {
  MiniDaqOptions options = small_record(target);
  options.duration_s = 60;
  const std::atomic<int> stop{2};  // raised before the first tick: the shortest record there is
  const MiniDaqResult result = run_minidaq(options, plan_minidaq(options), testing::aio_engine(), stop);
  EXPECT_EQ(result.status, RunStatus::interrupted);
  EXPECT_EQ(result.offered, result.stored);
  const testing::Verified verified = verify(directory, target);
  EXPECT_EQ(verified.exit_code, result.stored > 0 ? 0 : 3);  // nothing to verify is not intact
  EXPECT_EQ(verified.json["trailer_status"], "interrupted");
  EXPECT_EQ(verified.count("present"), result.stored);
}

// Or what one record left would count for a later one whose writes a drive dropped.
TEST_F(RecordTest, SameSeedAndRecordIdGiveAnotherPayloadInEachRun) {
  MiniDaqOptions options = small_record(target);
  options.links = 1;
  options.duration_s = 0.1;
  options.record_id = RecordId{1, 2, 3};
  record(options);
  MiniDaqOptions again = options;
  again.target = directory.path("again");
  record(again);
  const std::uint64_t payload = 4096 + 64;
  const auto first = testing::read_bytes(target, payload, 5504);
  const auto second = testing::read_bytes(again.target, payload, 5504);
  std::size_t same = 0;
  for (std::size_t i = 0; i < first.size(); ++i) same += first[i] == second[i] ? 1 : 0;
  EXPECT_LT(same, 5504u / 64);  // 1 of 256 by chance
}

TEST_F(RecordTest, EmitsOneLineProtocolRecordPerInterval) {
  MiniDaqOptions options = small_record(target);
  options.line_protocol_path = directory.path("lines");
  options.tags = {{"run_id", "r7"}};
  record(options);
  std::ifstream in(options.line_protocol_path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_GE(lines.size(), 5u);
  // One each 100 ms and one at the end: a busy machine takes longer, and never emits two in one interval.
  const double elapsed_s = std::stod(lines.back().substr(lines.back().find("elapsed_s=") + 10));
  ASSERT_LE(static_cast<double>(lines.size()), 2 + elapsed_s / 0.1 * 1.5);
  EXPECT_TRUE(lines.front().starts_with("daqwriter,command=minidaq,phase=record,run_id=r7 offered_bytes="))
      << lines.front();
  EXPECT_NE(lines.back().find("offered_bytes=16704000i,stored_bytes=16704000i,backlog_bytes=0i,busy_count="),
            std::string::npos);
  EXPECT_NE(lines.back().find("lost_superchunks=0i,elapsed_s="), std::string::npos);
  EXPECT_NE(lines.back().find(",buffer_bytes="), std::string::npos) << lines.back();
}

TEST_F(RecordTest, TheNullSinkTakesEverythingAndHasNothingToWriteTo) {
  MiniDaqOptions options = small_record("");
  options.null_sink = true;
  const MiniDaqResult result =
      record_in_full(options, [](unsigned) { return std::make_unique<NullEngine>(); });
  EXPECT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.stored, 3000u);
  const MiniDaqResult real = record(options);
  EXPECT_EQ(real.status, RunStatus::failed);
  EXPECT_NE(real.error.find("EBADF"), std::string::npos) << real.error;
}

}  // namespace
}  // namespace daqwriter
