// The block writer over an engine that misbehaves: what reaches the "disk", and what is said about what did
// not.
#include "io/block_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include "base/memory.h"
#include "support.h"

namespace daqwriter {
namespace {

using testing::FakeEngine;

class BlockWriterTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBlock = 16384;
  static constexpr std::size_t kAlignment = 4096;
  static constexpr std::size_t kPiece = 5568;

  BlockWriter writer(unsigned depth = 2, std::int64_t retry_ns = 50'000'000) {
    return BlockWriter(config(depth, retry_ns), engine, ledger, memory.data());
  }
  static BlockWriter::Config config(unsigned depth = 2, std::int64_t retry_ns = 50'000'000) {
    return {{.target = "the target", .alignment = kAlignment, .depth = depth, .retry_ns = retry_ns},
            kAlignment,
            kBlock};
  }

  // Appends `count` superchunks of random bytes; remembers what must come out.
  bool append(BlockWriter& blocks, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::byte> piece(kPiece);
      for (std::byte& b : piece) b = static_cast<std::byte>(random());
      if (!blocks.append(piece.data(), piece.size())) return false;
      ledger.note_superchunk(0, appended++, 0);
      blocks.submit_if_full();
      expected.insert(expected.end(), piece.begin(), piece.end());
    }
    return true;
  }

  void expect_disk_holds_everything() {
    ASSERT_GE(engine.disk.size(), kAlignment + expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), engine.disk.begin() + kAlignment));
    for (std::size_t i = kAlignment + expected.size(); i < engine.disk.size(); ++i)
      EXPECT_EQ(engine.disk[i], std::byte{0});
  }

  FakeEngine engine;
  DurabilityLedger ledger{1, 0, {[](std::int64_t) { return 0ull; }, [] { return 0ull; }}};
  Memory memory{BlockWriter::buffer_count(3) * kBlock, std::nullopt};
  std::mt19937 random{5};
  std::vector<std::byte> expected;
  std::uint64_t appended = 0;
};

TEST_F(BlockWriterTest, StreamsWithoutAGapAndPadsOnlyTheEnd) {
  BlockWriter blocks = writer();
  ASSERT_TRUE(append(blocks, 51));
  ASSERT_TRUE(blocks.finish());
  expect_disk_holds_everything();
  EXPECT_EQ(blocks.padding_bytes(), 4096 - 51 * kPiece % 4096);
  EXPECT_EQ(blocks.end_offset() % kAlignment, 0u);
  EXPECT_EQ(ledger.superchunks_stored(), 51u);
  EXPECT_EQ(ledger.durable_bytes(), 51 * kPiece);
  EXPECT_LE(engine.most_in_flight, 2u);
  for (const auto& request : engine.accepted) {
    EXPECT_EQ(request.offset % kAlignment, 0u);
    EXPECT_EQ(request.bytes % kAlignment, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(request.data) % kAlignment, 0u);
  }
}

TEST_F(BlockWriterTest, NeedsNoPaddingWhenTheStreamEndsOnABlockEdge) {
  BlockWriter blocks = writer();
  ASSERT_TRUE(append(blocks, 256));  // 256 x 5568 = 87 x 16384
  ASSERT_TRUE(blocks.finish());
  expect_disk_holds_everything();
  EXPECT_EQ(blocks.padding_bytes(), 0u);
  EXPECT_EQ(ledger.superchunks_stored(), 256u);
}

TEST_F(BlockWriterTest, NeverTouchesABufferBeforeItsCompletionIsReaped) {
  // The disk content is taken at completion, not at submission: refilling a buffer too early would show here.
  engine.newest_first = true;
  BlockWriter blocks = writer(3);
  ASSERT_TRUE(append(blocks, 300));
  ASSERT_TRUE(blocks.finish());
  expect_disk_holds_everything();
  EXPECT_EQ(ledger.superchunks_stored(), 300u);
}

TEST_F(BlockWriterTest, ContinuesShortWritesAtAnAlignedOffset) {
  engine.on_complete = [](std::size_t n, const IoRequest& r) {
    return static_cast<std::int64_t>(n % 3 == 0 ? std::min<std::size_t>(5000, bytes_of(r.pieces))
                                                : bytes_of(r.pieces));
  };
  BlockWriter blocks = writer();
  ASSERT_TRUE(append(blocks, 60));
  ASSERT_TRUE(blocks.finish());
  expect_disk_holds_everything();
  for (const auto& request : engine.accepted) EXPECT_EQ(request.offset % kAlignment, 0u);
  EXPECT_EQ(ledger.superchunks_stored(), 60u);
  EXPECT_EQ(blocks.completed_bytes(), blocks.end_offset() - kAlignment);
}

TEST_F(BlockWriterTest, GivesUpWhenShortWritesMakeNoProgress) {
  engine.on_complete = [](std::size_t, const IoRequest&) { return 100; };
  BlockWriter blocks = writer();
  append(blocks, 60);
  EXPECT_FALSE(blocks.finish());
  EXPECT_NE(blocks.error().text.find("no progress"), std::string::npos) << blocks.error().text;
}

TEST_F(BlockWriterTest, RetriesEagainAtSubmissionAndAtCompletion) {
  engine.on_submit = [](std::size_t n) { return n % 2 == 0 ? -EAGAIN : 0; };
  engine.on_complete = [](std::size_t n, const IoRequest& r) {
    return n % 4 == 1 ? std::int64_t{-EAGAIN} : static_cast<std::int64_t>(bytes_of(r.pieces));
  };
  BlockWriter blocks = writer();
  ASSERT_TRUE(append(blocks, 60));
  ASSERT_TRUE(blocks.finish());
  expect_disk_holds_everything();
  EXPECT_EQ(ledger.superchunks_stored(), 60u);
}

TEST_F(BlockWriterTest, BearsEagainOnlyForABoundedTimeAndNamesTheLimits) {
  engine.on_submit = [](std::size_t) { return -EAGAIN; };
  BlockWriter blocks = writer();
  append(blocks, 60);
  EXPECT_FALSE(blocks.finish());
  EXPECT_EQ(blocks.error().error_number, EAGAIN);
  EXPECT_NE(blocks.error().text.find("aio-max-nr"), std::string::npos) << blocks.error().text;
}

TEST_F(BlockWriterTest, EndsAtEioWithItsPlaceAndKeepsTheAccountOfTheRest) {
  engine.on_complete = [](std::size_t n, const IoRequest& r) {
    return n == 3 ? std::int64_t{-EIO} : static_cast<std::int64_t>(bytes_of(r.pieces));
  };
  BlockWriter blocks = writer();
  append(blocks, 100);
  EXPECT_FALSE(blocks.finish());
  EXPECT_EQ(blocks.error().error_number, EIO);
  EXPECT_EQ(blocks.error().offset, kAlignment + 3 * kBlock);
  for (const char* part : {"the target", "offset 53248", "16384 B", "EIO"}) {
    EXPECT_NE(blocks.error().text.find(part), std::string::npos) << blocks.error().text;
  }
  EXPECT_EQ(ledger.superchunks_stored(), 3 * kBlock / kPiece);  // whole ones in the three blocks before it
  EXPECT_EQ(blocks.in_flight(), 0u);
}

TEST_F(BlockWriterTest, EndsAtEnospcAfterAShortWrite) {
  engine.on_complete = [](std::size_t n, const IoRequest& r) {
    if (n == 2) return std::int64_t{8192};
    return n > 2 ? std::int64_t{-ENOSPC} : static_cast<std::int64_t>(bytes_of(r.pieces));
  };
  BlockWriter blocks = writer(1);
  append(blocks, 100);
  EXPECT_FALSE(blocks.finish());
  EXPECT_EQ(blocks.error().error_number, ENOSPC);
  EXPECT_EQ(blocks.error().offset, kAlignment + 2 * kBlock + 8192);
  EXPECT_EQ(ledger.durable_bytes(), 2 * kBlock);
}

TEST_F(BlockWriterTest, EndsAtAnErrorOfSubmission) {
  engine.on_submit = [](std::size_t n) { return n == 1 ? -EINVAL : 0; };
  BlockWriter blocks = writer();
  append(blocks, 100);
  EXPECT_FALSE(blocks.finish());
  EXPECT_EQ(blocks.error().error_number, EINVAL);
  EXPECT_EQ(blocks.error().offset, kAlignment + kBlock);
}

// A caller that fills the blocks by itself, in portions that go over their edges.
TEST_F(BlockWriterTest, RoomIsFilledWithoutAGapAndNeverGoesOverABlock) {
  BlockWriter blocks = writer();
  for (std::size_t i = 0; i < 200; ++i) {
    std::vector<std::byte> piece(kPiece);
    for (std::byte& b : piece) b = static_cast<std::byte>(random());
    for (std::size_t done = 0; done < piece.size();) {
      const std::span<std::byte> room = blocks.room(piece.size() - done);
      ASSERT_FALSE(room.empty());
      const auto begin =
          reinterpret_cast<std::uintptr_t>(room.data()) - reinterpret_cast<std::uintptr_t>(memory.data());
      ASSERT_EQ(begin / kBlock, (begin + room.size() - 1) / kBlock);
      std::copy_n(piece.begin() + static_cast<std::ptrdiff_t>(done), room.size(), room.begin());
      blocks.filled(room.size());
      done += room.size();
    }
    ledger.note_superchunk(0, appended++, 0);
    blocks.submit_if_full();
    expected.insert(expected.end(), piece.begin(), piece.end());
  }
  ASSERT_TRUE(blocks.finish());
  expect_disk_holds_everything();
  EXPECT_EQ(ledger.superchunks_stored(), 200u);
}

TEST_F(BlockWriterTest, ThereIsNoRoomOnceTheStreamHasFailed) {
  engine.on_submit = [](std::size_t) { return -EIO; };
  BlockWriter blocks = writer();
  const std::span<std::byte> room = blocks.room(kPiece);
  ASSERT_EQ(room.size(), kPiece);
  blocks.filled(kPiece);
  append(blocks, 60);
  EXPECT_TRUE(blocks.room(1).empty());
  EXPECT_FALSE(blocks.append(room.data(), 1));
}

// Two writers of one framed record, over engines that answer out of order and in parts.
class FramedBlocksTest : public BlockWriterTest {
 protected:
  BlockWriter framed_writer(IoEngine& its_engine, DurabilityLedger& its_ledger, Memory& its_memory,
                            std::uint32_t number, std::uint64_t most_blocks) {
    BlockWriter::Config its = config();
    its.framing = Framing{{.header_crc = 9, .writer = number}, 2, kPiece, most_blocks, &next_number};
    return BlockWriter(its, its_engine, its_ledger, its_memory.data());
  }
  static bool put(BlockWriter& blocks, DurabilityLedger& its_ledger, std::uint8_t value) {
    const std::vector<std::byte> piece(kPiece, std::byte{value});
    if (!blocks.append(piece.data(), piece.size())) return false;
    its_ledger.note_superchunk(0, 0, 0);
    blocks.submit_if_full();
    return true;
  }

  std::atomic<std::uint64_t> next_number{0};
  FakeEngine other_engine;
  DurabilityLedger other_ledger{1, 0, {[](std::int64_t) { return 0ull; }, [] { return 0ull; }}};
  Memory other_memory{BlockWriter::buffer_count(2) * kBlock, std::nullopt};
};

TEST_F(FramedBlocksTest, EveryNumberIsTakenOnceAndStandsInItsPlace) {
  for (FakeEngine* each : {&engine, &other_engine}) {
    each->newest_first = true;
    each->on_complete = [](std::size_t n, const IoRequest& r) {
      return n % 3 == 1 ? std::int64_t{4096} : static_cast<std::int64_t>(bytes_of(r.pieces));
    };
  }
  BlockWriter one = framed_writer(engine, ledger, memory, 0, 100);
  BlockWriter other = framed_writer(other_engine, other_ledger, other_memory, 1, 100);
  for (std::uint8_t i = 0; i < 31; ++i) {  // an odd number: one superchunk is left
    ASSERT_TRUE(put(one, ledger, 1));
    ASSERT_TRUE(i % 3 > 0 || put(other, other_ledger, 2));
  }
  ASSERT_TRUE(one.finish() && other.finish());
  EXPECT_EQ(next_number, 16u + 6u);
  EXPECT_EQ(one.blocks() + other.blocks(), next_number);
  std::array<std::uint64_t, 2> superchunks{};
  for (std::uint64_t number = 0; number < next_number; ++number) {
    const std::size_t begin = kAlignment + number * kBlock;
    BlockFrame frame;
    const auto block = [&](const FakeEngine& from) {
      std::vector<std::byte> data(kBlock);
      const std::size_t there = from.disk.size() > begin ? std::min(kBlock, from.disk.size() - begin) : 0;
      std::copy_n(from.disk.begin() + static_cast<std::ptrdiff_t>(begin), there, data.begin());
      return data;
    };
    std::vector<std::byte> data = block(engine);
    const bool from_one = decode_frame(data, frame) == BlockCheck::valid;
    if (!from_one) data = block(other_engine);
    ASSERT_EQ(decode_frame(data, frame), BlockCheck::valid) << number;
    EXPECT_EQ(frame.number, number);
    EXPECT_EQ(frame.writer, from_one ? 0u : 1u);
    superchunks[frame.writer] += frame.superchunks;
    const std::byte value{static_cast<std::uint8_t>(frame.writer + 1)};
    const auto end = data.begin() + static_cast<std::ptrdiff_t>(kAlignment + frame.superchunks * kPiece);
    EXPECT_TRUE(std::all_of(data.begin() + kAlignment, end, [&](std::byte b) { return b == value; }));
    EXPECT_TRUE(std::all_of(end, data.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
  EXPECT_EQ(superchunks[0], 31u);
  EXPECT_EQ(superchunks[1], 11u);
  EXPECT_EQ(ledger.superchunks_stored(), 31u);
}

TEST_F(FramedBlocksTest, NothingIsWrittenBehindTheRoomOfTheRecord) {
  BlockWriter blocks = framed_writer(engine, ledger, memory, 0, 3);
  int stored = 0;
  while (stored < 100 && put(blocks, ledger, 1)) ++stored;
  EXPECT_FALSE(blocks.finish());
  EXPECT_EQ(blocks.error().error_number, EOVERFLOW);
  EXPECT_NE(blocks.error().text.find("block 3 has no room"), std::string::npos) << blocks.error().text;
  EXPECT_LE(engine.disk.size(), kAlignment + 3 * kBlock);
}

TEST_F(FramedBlocksTest, NoNumberIsTakenWithoutASuperchunk) {
  BlockWriter blocks = framed_writer(engine, ledger, memory, 0, 3);
  EXPECT_TRUE(blocks.finish());
  EXPECT_EQ(next_number, 0u);
  EXPECT_EQ(blocks.blocks(), 0u);
}

}  // namespace
}  // namespace daqwriter
