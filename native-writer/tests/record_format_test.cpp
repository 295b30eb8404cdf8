// The bytes on the disk against goldens that were computed from FORMAT.md by another program (Python's struct
// and zlib), so that the encoder is not its own judge.
#include "record_format.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <numeric>

#include "status.h"

namespace daqwriter {
namespace {

RecordId counting_id() {
  RecordId id{};
  std::iota(id.begin(), id.end(), std::uint8_t{0});
  return id;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) & 0xf];
  }
  return text;
}

RecordHeader sample_header() {
  return {counting_id(), 7,   1'700'000'000'000'000'000, 10,   5568,       12052,
          166'000,       100, ChecksumKind::crc32,       4096, 166'000'000};
}

RecordTrailer sample_trailer() {
  return {counting_id(), TrailerStatus::interrupted, 5,
          27840,         1'700'000'001'000'000'000,  {{3, 2, 0, 4}, {2, 0, 0, 1}}};
}

TEST(RecordFormat, HeaderBlockIsAsDocumented) {
  std::vector<std::byte> block(4096, std::byte{0xff});
  encode_record_header(sample_header(), block);
  EXPECT_EQ(
      hex(std::span(block).first(104)),
      "444151524543303108070605040302010100000032de0cc2000102030405060708090a0b0c0d0e0f070000000000000000002a"
      "36fe9c9717"
      "0a000000c0150000142f00000000000000000000804304410000000000005940010000000010000080f5e40900000000");
  EXPECT_EQ(libdeflate_crc32(0, block.data(), block.size()), 0xa3cf5634u);
}

TEST(RecordFormat, TrailerBlockIsAsDocumented) {
  std::vector<std::byte> block(4096, std::byte{0xff});
  encode_trailer(sample_trailer(), block);
  EXPECT_EQ(hex(std::span(block).first(128)),
            "444151454e44303101000000b5e0012a000102030405060708090a0b0c0d0e0f0500000000000000c06c000000000000"
            "01000000020000000"
            "0cac471fe9c9717030000000000000002000000000000000000000000000000040000000000000002000000000000000"
            "000000000000000000"
            "00000000000000100000000000000");
  EXPECT_EQ(libdeflate_crc32(0, block.data(), block.size()), 0xdf273703u);
}

TEST(RecordFormat, SuperchunkHeaderChecksumIsAsDocumented) {
  const SuperchunkHeader header{kSuperchunkMagic, 12345, counting_id(), 9, 8, 54216, 3, 5504, 0xdeadbeef, 1};
  EXPECT_EQ(header_crc(header), 0xe27445bcu);
}

TEST(RecordFormat, HeaderSurvivesARoundTripAndNoFlippedBit) {
  std::vector<std::byte> block(4096);
  encode_record_header(sample_header(), block);
  RecordHeader back;
  ASSERT_EQ(decode_record_header(block, back), BlockCheck::valid);
  EXPECT_EQ(back.record_id, counting_id());
  EXPECT_EQ(back.seed, 7u);
  EXPECT_EQ(back.links, 10u);
  EXPECT_EQ(back.superchunk_bytes, 5568u);
  EXPECT_EQ(back.slots_per_link, 12052u);
  EXPECT_EQ(back.rate_hz, 166'000);
  EXPECT_EQ(back.checksum, ChecksumKind::crc32);
  EXPECT_EQ(back.intended_superchunks, 166'000'000u);
  for (std::size_t at = 0; at < block.size(); at += 3) {
    block[at] ^= std::byte{4};
    EXPECT_EQ(decode_record_header(block, back), at < 8 ? BlockCheck::foreign : BlockCheck::damaged) << at;
    block[at] ^= std::byte{4};
  }
}

TEST(RecordFormat, TrailerSurvivesARoundTripAndNoFlippedBit) {
  std::vector<std::byte> block(4096);
  encode_trailer(sample_trailer(), block);
  RecordTrailer back;
  ASSERT_EQ(decode_trailer(block, back), BlockCheck::valid);
  EXPECT_EQ(back.status, TrailerStatus::interrupted);
  EXPECT_EQ(back.superchunks, 5u);
  ASSERT_EQ(back.links.size(), 2u);
  EXPECT_EQ(back.links[0].lost, 2u);
  EXPECT_EQ(back.links[0].last_sequence, 4u);
  for (std::size_t at = 0; at < block.size(); at += 3) {
    block[at] ^= std::byte{4};
    EXPECT_NE(decode_trailer(block, back), BlockCheck::valid) << at;
    block[at] ^= std::byte{4};
  }
}

TEST(RecordFormat, SizeOfARecordIsItsDataPaddedOnceAndTwoBlocks) {
  EXPECT_EQ(record_bytes(0, 5568, 4096), 8192u);
  EXPECT_EQ(record_bytes(1, 5568, 4096), 8192u + 8192u);
  EXPECT_EQ(record_bytes(64, 5568, 4096), 8192u + 356'352u);  // seed-facts: the smallest aligned multiple
}

TEST(RecordId, ReadsWhatItWrites) {
  EXPECT_EQ(record_id_text(counting_id()), "000102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(parse_record_id("000102030405060708090a0b0c0d0e0f"), counting_id());
  EXPECT_NE(random_record_id(), random_record_id());
  for (const char* text : {"", "00", "000102030405060708090a0b0c0d0e0", "zz0102030405060708090a0b0c0d0e0f",
                           "000102030405060708090A0b0c0d0e0f"}) {
    EXPECT_THROW(parse_record_id(text), Refusal) << text;
  }
}

TEST(RecordFormat, OnlyATriggeredRecordNeedsAReaderOfVersionTwo) {
  std::vector<std::byte> block(4096);
  RecordHeader header = sample_header();
  encode_record_header(header, block);
  EXPECT_EQ(hex(std::span(block).subspan(16, 4)), "01000000");
  header.mode = RecordMode::triggered;
  encode_record_header(header, block);
  EXPECT_EQ(hex(std::span(block).subspan(16, 4)), "02000000");
  RecordHeader back;
  ASSERT_EQ(decode_record_header(block, back), BlockCheck::valid);
  EXPECT_EQ(back.mode, RecordMode::triggered);
}

}  // namespace
}  // namespace daqwriter
