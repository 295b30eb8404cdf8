// Framed records (format 3), built here from FORMAT.md by hand: good ones, then one known damage each.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/payload.h"
#include "format/record_format.h"
#include "support.h"

namespace daqwriter {
namespace {

using testing::read_bytes;
using testing::TempDir;
using testing::Verified;
using testing::write_bytes;
using Bytes = std::vector<std::byte>;
using Counts = std::map<std::string, std::uint64_t>;

class FramedTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBlock = 16384;
  static constexpr std::uint32_t kSize = 1000;
  static constexpr std::uint64_t kPerBlock = 12;
  static constexpr std::uint64_t kBlocks = 9;  // the last two hold less

  void SetUp() override {
    testing::write_text(target, "");
    header = {.record_id = testing_id(1),
              .seed = 7,
              .links = 4,
              .superchunk_bytes = kSize,
              .slots_per_link = 16,
              .rate_hz = 100,
              .duration_s = 1,
              .checksum = ChecksumKind::crc32,
              .intended_superchunks = 120,
              .block_bytes = kBlock,
              .writers = 2,
              .most_blocks = 11};
    Bytes block(4096);
    encode_record_header(header, block);
    write_bytes(target, 0, block);
    for (std::uint64_t number = 0; number < kBlocks; ++number)
      put_block(number, number % 2, number < kBlocks - 2 ? kPerBlock : 5);
    put_trailer();
  }

  static RecordId testing_id(std::uint8_t first) {
    RecordId id{};
    std::iota(id.begin(), id.end(), first);
    return id;
  }
  static std::uint64_t block_at(std::uint64_t number) { return 4096 + number * kBlock; }
  static std::uint64_t superchunk_at(std::uint64_t block, std::uint64_t index) {
    return block_at(block) + 4096 + index * kSize;
  }

  // Writer 0 has the links 0 and 2, writer 1 has 1 and 3; each takes them in turn.
  void put_block(std::uint64_t number, std::uint32_t writer, std::uint64_t count) {
    put_frame({header.record_id, number, header.block_crc, static_cast<std::uint32_t>(count), writer});
    Bytes data;
    for (std::uint64_t k = 0; k < count; ++k) {
      const auto link = static_cast<std::uint32_t>(writer + 2 * (k % 2));
      const Bytes one = superchunk(link, ordinals[link]++);
      data.insert(data.end(), one.begin(), one.end());
    }
    data.resize(round_up(data.size(), 4096));
    write_bytes(target, block_at(number) + 4096, data);
  }
  void put_frame(const BlockFrame& frame) {
    Bytes block(4096);
    encode_frame(frame, block);
    write_bytes(target, block_at(frame.number), block);
  }
  BlockFrame frame(std::uint64_t number) const {
    BlockFrame found;
    EXPECT_EQ(decode_frame(read_bytes(target, block_at(number), 4096), found), BlockCheck::valid);
    return found;
  }
  Bytes superchunk(std::uint32_t link, std::uint64_t ordinal) const {
    Bytes whole(header.superchunk_bytes);
    const std::span payload = std::span(whole).subspan(sizeof(SuperchunkHeader));
    fill_payload(payload, payload_key(header.seed, header.record_id), link, ordinal % header.slots_per_link);
    SuperchunkHeader h{kSuperchunkMagic,
                       0,
                       header.record_id,
                       ordinal,
                       ordinal,
                       0,
                       link,
                       static_cast<std::uint32_t>(payload.size()),
                       checksum(header.checksum, payload),
                       static_cast<std::uint32_t>(header.checksum)};
    h.header_crc = header_crc(h);
    std::memcpy(whole.data(), &h, sizeof h);
    return whole;
  }
  RecordTrailer trailer() const {
    RecordTrailer t;
    t.record_id = header.record_id;
    t.header_crc = header.block_crc;
    t.blocks = kBlocks;
    for (const std::uint64_t stored : ordinals) {
      t.links.push_back({stored, 0, 0, stored - 1});
      t.superchunks += stored;
    }
    return t;
  }
  void put_trailer() { put_trailer(trailer(), kBlocks); }
  void put_trailer(const RecordTrailer& t, std::uint64_t behind) {
    Bytes block(4096);
    encode_trailer(t, block);
    write_bytes(target, block_at(behind), block);
  }
  void flip(std::uint64_t offset) {
    Bytes byte = read_bytes(target, offset, 1);
    byte[0] ^= std::byte{1};
    write_bytes(target, offset, byte);
  }
  void cut_trailer() { std::filesystem::resize_file(target, block_at(kBlocks)); }

  Verified verify() const { return testing::verify(directory, target); }
  std::uint64_t all() const { return std::accumulate(ordinals.begin(), ordinals.end(), std::uint64_t{0}); }
  // Exactly these counts; the rest is present.
  Verified expect(const Counts& wrong) const {
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.wrong(), wrong) << result.json.dump(1);
    EXPECT_EQ(result.count("expected"), all()) << result.json.dump(1);
    return result;
  }
  static bool names(const Verified& result, const std::string& part) {
    return std::any_of(result.json["faults"].begin(), result.json["faults"].end(), [&](const auto& fault) {
      return fault["detail"].template get<std::string>().find(part) != std::string::npos;
    });
  }

  TempDir directory;
  std::string target = directory.path("record");
  RecordHeader header;
  std::array<std::uint64_t, 4> ordinals{};
};

TEST_F(FramedTest, AGoodRecordIsIntact) {
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.json.dump(1);
  EXPECT_EQ(result.count("present"), all());
  EXPECT_EQ(result.json["trailer_bound"], true);
}

TEST_F(FramedTest, ADamagedFrameCostsNoSuperchunk) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{3}, kBlocks - 1}) {
    flip(block_at(number) + 40);
    const Verified result = expect({});
    EXPECT_TRUE(names(result, "the frame of block " + std::to_string(number)));
    EXPECT_EQ(result.count("present"), all());
    flip(block_at(number) + 40);
  }
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(FramedTest, AZeroedBlockLosesWhatItHeldAndNothingBehindIt) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{4}}) {
    const Bytes before = read_bytes(target, block_at(number), kBlock);
    write_bytes(target, block_at(number), Bytes(kBlock));
    const Verified result = expect({{"missing", kPerBlock}});
    EXPECT_TRUE(names(result, "the frame of block " + std::to_string(number)));
    write_bytes(target, block_at(number), before);
  }
}

// Far more than a writer leaves: the reader goes on, and tells the stretch once.
TEST_F(FramedTest, AfterAnyStretchOfDamageTheNextFrameIsFound) {
  constexpr std::uint64_t kFar = 9000;  // 108 000 superchunks on
  header.most_blocks = kFar + 5;
  header.intended_superchunks = (kFar + 5) * kPerBlock;
  Bytes block(4096);
  encode_record_header(header, block);
  write_bytes(target, 0, block);
  ordinals = {};
  for (std::uint64_t number = 0; number < 4; ++number) put_block(number, number % 2, kPerBlock);
  write_bytes(target, block_at(4), Bytes((kBlocks - 3) * std::uint64_t{kBlock}));
  write_bytes(target, block_at(200), testing::random_bytes(300'000));  // and not all of one kind
  flip(block_at(1) + 40);
  put_block(kFar, 0, kPerBlock);
  const auto stretches = [&](const Verified& result) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.count("present"), all()) << result.json.dump(1);
    EXPECT_TRUE(names(result, "the frame of block 1: "));
    EXPECT_TRUE(names(result, "the frames of the 8996 blocks 4 to 8999, bytes " +
                                  std::to_string(block_at(4)) + " to " + std::to_string(block_at(kFar)) +
                                  ": "))
        << result.json.dump(1);
    return result.json["faults"].size();
  };
  EXPECT_EQ(stretches(verify()), 3u);  // and not closed
  RecordTrailer t = trailer();
  t.blocks = kFar + 1;
  put_trailer(t, kFar + 1);
  EXPECT_EQ(stretches(verify()), 2u);
  // In a record without a trailer, blocks behind the last good frame are no damage.
  std::filesystem::resize_file(target, block_at(kFar));
  const Verified cut = verify();
  EXPECT_EQ(cut.json["faults"].size(), 2u) << cut.json.dump(1);
  EXPECT_TRUE(names(cut, "the frame of block 1: "));
  EXPECT_FALSE(names(cut, "blocks 4 to"));
}

// Superchunks that are recognised without a frame show how far the record reaches.
TEST_F(FramedTest, ASeriesOfDamagedFramesAtTheEndIsToldUpToTheLastSuperchunk) {
  cut_trailer();
  std::filesystem::resize_file(target, block_at(kBlocks) + 2 * kBlock);
  for (std::uint64_t number = 5; number < kBlocks; ++number) flip(block_at(number) + 40);
  const Verified result = verify();
  EXPECT_TRUE(names(result, "the frames of the 4 blocks 5 to 8, bytes ")) << result.json.dump(1);
  EXPECT_EQ(result.json["faults"].size(), 2u);
  EXPECT_EQ(result.count("present"), all());
}

// A header that promises more than there is does not make the reader go on for ever.
TEST_F(FramedTest, TheEndOfTheFileBoundsTheSearch) {
  header.most_blocks = std::uint64_t{1} << 24;
  header.intended_superchunks = header.most_blocks * kPerBlock;
  Bytes block(4096);
  encode_record_header(header, block);
  write_bytes(target, 0, block);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);  // no frame is bound to this header
  EXPECT_LT(result.json["bytes_read"], 1 << 20);
}

TEST_F(FramedTest, ASuperchunkThatIsHalfThereIsFoundInItsBlock) {
  write_bytes(target, superchunk_at(2, 3) + 512, Bytes(200));
  expect({{"corrupt", 1}});
}

// However much of a block is damaged: the search for what is whole in it ends where the block does.
TEST_F(FramedTest, WhatIsWholeBehindALongDamageInsideOneBlockIsFound) {
  constexpr std::uint64_t kDamaged = 100'100;
  constexpr std::uint64_t kGood = 8;
  header.superchunk_bytes = kMinSuperchunkBytes + 15;
  header.block_bytes = 16 << 20;
  header.most_blocks = 1;
  header.writers = 1;
  header.links = 1;
  header.intended_superchunks = kDamaged + kGood;
  Bytes whole(4096);
  encode_record_header(header, whole);
  std::filesystem::resize_file(target, 0);
  write_bytes(target, 0, whole);
  put_frame({header.record_id, 0, header.block_crc, kDamaged + kGood});
  Bytes data(round_up((kDamaged + kGood) * header.superchunk_bytes, 4096));
  for (std::uint64_t ordinal = kDamaged; ordinal < kDamaged + kGood; ++ordinal) {
    const Bytes one = superchunk(0, ordinal);
    std::copy(one.begin(), one.end(),
              data.begin() + static_cast<std::ptrdiff_t>(ordinal * header.superchunk_bytes));
  }
  write_bytes(target, 8192, data);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.count("present"), kGood) << result.json["superchunks"].dump(1);
  EXPECT_EQ(result.count("corrupt"), kDamaged);
}

TEST_F(FramedTest, TwoSwappedBlocksAreToldByTheirFrames) {
  const Bytes one = read_bytes(target, block_at(2), kBlock), other = read_bytes(target, block_at(4), kBlock);
  write_bytes(target, block_at(2), other);
  write_bytes(target, block_at(4), one);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(names(result, "the frame of block 2: it is of block 4")) << result.json.dump(1);
  EXPECT_TRUE(names(result, "the frame of block 4: it is of block 2"));
  EXPECT_GT(result.count("out_of_order"), 0u);
}

TEST_F(FramedTest, ACopyOfABlockInPlaceOfAnotherIsDuplicatedAndTheOtherMissing) {
  write_bytes(target, block_at(5), read_bytes(target, block_at(3), kBlock));
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.count("duplicated"), kPerBlock) << result.json.dump(1);
  EXPECT_EQ(result.count("missing"), kPerBlock);
}

TEST_F(FramedTest, AFrameThatCountsLessHidesNothing) {
  BlockFrame lying = frame(3);
  lying.superchunks -= 2;
  put_frame(lying);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.count("missing"), 2u) << result.json.dump(1);
}

TEST_F(FramedTest, AFrameThatCountsMoreInventsNothing) {
  BlockFrame lying = frame(kBlocks - 1);
  lying.superchunks += 2;
  put_frame(lying);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.count("present"), all());
  EXPECT_EQ(result.count("corrupt"), 2u) << result.json.dump(1);
}

TEST_F(FramedTest, FramesOfAnotherHeaderRecordWriterOrSizeAreNone) {
  const BlockFrame good = frame(3);
  const auto fault_of = [&](const BlockFrame& bad, const Counts& wrong = {}) {
    put_frame(bad);
    const Verified result = expect(wrong);
    put_frame(good);
    return result;
  };
  BlockFrame bad = good;
  bad.header_crc ^= 1;
  // An earlier record with the same id left it, superchunks included.
  EXPECT_TRUE(names(fault_of(bad, {{"missing", kPerBlock}}), "it belongs to another header"));
  bad = good;
  bad.record_id = testing_id(2);
  EXPECT_TRUE(names(fault_of(bad), "it is of record"));
  bad = good;
  bad.writer = 2;
  EXPECT_TRUE(names(fault_of(bad), "its writer is 2 of 2"));
  for (const std::uint32_t count : {0u, 13u, UINT32_MAX}) {
    bad = good;
    bad.superchunks = count;
    EXPECT_TRUE(names(fault_of(bad), "it counts " + std::to_string(count) + " superchunks")) << count;
  }
}

TEST_F(FramedTest, PaddingMustBeZeroAndWhatLiesBehindItIsNobodys) {
  const std::uint64_t padding = superchunk_at(kBlocks - 1, 5);
  flip(padding + 7);
  const Verified result = expect({});
  EXPECT_EQ(result.json["faults"][0]["offset_bytes"], padding + 7) << result.json.dump(1);
  flip(padding + 7);
  write_bytes(target, superchunk_at(kBlocks - 1, 5) + 4096, Bytes(100, std::byte{0xff}));
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(FramedTest, WithoutATrailerItIsIncompleteAndItsEndIsNoDamage) {
  cut_trailer();
  std::filesystem::resize_file(target, block_at(kBlocks) + 2 * kBlock);  // preallocated, never written
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  ASSERT_EQ(result.json["faults"].size(), 1u) << result.json.dump(1);
  EXPECT_EQ(result.json["faults"][0]["kind"], "incomplete");
  EXPECT_EQ(result.count("present"), all());
}

TEST_F(FramedTest, ABlockThatIsCutOffIsIncompleteAndCounted) {
  std::filesystem::resize_file(target, superchunk_at(3, 6) / 4096 * 4096);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_GT(result.count("present"), 3 * kPerBlock);
  EXPECT_LT(result.count("present"), 3 * kPerBlock + 6);
}

TEST_F(FramedTest, ATrailerThatDoesNotFitIsNone) {
  const auto fault_of = [&](RecordTrailer t) {
    put_trailer(t, kBlocks);
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.json["complete_trailer"], false);
    return result;
  };
  RecordTrailer bad = trailer();
  bad.blocks = kBlocks - 1;
  EXPECT_TRUE(names(fault_of(bad), "it counts 8 blocks, which end elsewhere"));
  bad = trailer();
  bad.blocks.reset();
  bad.data_bytes = bad.superchunks * kSize;
  EXPECT_TRUE(names(fault_of(bad), "it counts no blocks"));
  bad = trailer();
  bad.header_crc = 5;
  EXPECT_TRUE(names(fault_of(bad), "another header"));
}

TEST_F(FramedTest, ATrailerInPlaceOfABlockEndsNothingBeforeItsTime) {
  put_trailer(trailer(), 4);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(names(result, "the frame of block 4")) << result.json.dump(1);
  EXPECT_EQ(result.count("present"), all());
}

TEST_F(FramedTest, WhatStandsBehindTheTrailerOfAFileIsNamed) {
  const std::uint64_t end = std::filesystem::file_size(target);
  write_bytes(target, end, Bytes(4096, std::byte{1}));
  const Verified result = expect({});
  EXPECT_TRUE(names(result, "behind the trailer")) << result.json.dump(1);
}

TEST_F(FramedTest, HeadersThatNoWriterWritesAreDamageAndNothingIsAllocated) {
  const auto refused = [&](const RecordHeader& bad) {
    RecordHeader copy = bad;
    Bytes block(4096);
    encode_record_header(copy, block);
    write_bytes(target, 0, block);
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    return names(result, "the record header: ");
  };
  RecordHeader bad = header;
  bad.block_bytes = 4096;  // no room for a superchunk
  EXPECT_TRUE(refused(bad));
  bad = header;
  bad.block_bytes = 16384 + 512;
  EXPECT_TRUE(refused(bad));
  bad = header;
  bad.writers = 0;
  EXPECT_TRUE(refused(bad));
  bad.writers = 5;  // more than links
  EXPECT_TRUE(refused(bad));
  bad = header;
  bad.most_blocks = UINT64_MAX;
  EXPECT_TRUE(refused(bad));
}

}  // namespace
}  // namespace daqwriter
