// The bytes on the disk against goldens that were computed from FORMAT.md by another program (Python's struct
// and zlib), so that the encoder is not its own judge.
#include "format/record_format.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <cmath>
#include <numeric>

#include "base/status.h"

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

// The header of an older record, whose trailer does not name its header.
RecordHeader older_header() {
  RecordHeader header = sample_header();
  header.trailer_version = 0;
  return header;
}

RecordTrailer older_trailer() {
  return {counting_id(),
          TrailerStatus::interrupted,
          5,
          27840,
          1'700'000'001'000'000'000,
          {{3, 2, 0, 4}, {2, 0, 0, 1}},
          std::nullopt,
          std::nullopt};
}

RecordTrailer sample_trailer() {
  RecordTrailer trailer = older_trailer();
  trailer.header_crc = 0x728cfaef;
  return trailer;
}

// The blocks, and what is wrong with them.
std::vector<std::byte> encoded(RecordHeader header) {
  std::vector<std::byte> block(4096, std::byte{0xff});
  encode_record_header(header, block);
  return block;
}
std::vector<std::byte> encoded(const RecordTrailer& trailer) {
  std::vector<std::byte> block(4096, std::byte{0xff});
  encode_trailer(trailer, block);
  return block;
}
std::string fault(const RecordHeader& header) {
  RecordHeader back;
  std::string why;
  EXPECT_EQ(decode_record_header(encoded(header), back, &why), BlockCheck::damaged);
  return why;
}
std::string fault(const RecordTrailer& trailer) {
  RecordTrailer back;
  std::string why;
  EXPECT_EQ(decode_trailer(encoded(trailer), back, &why), BlockCheck::damaged);
  return why;
}

TEST(RecordFormat, OlderHeaderBlockIsAsItWasDocumented) {
  const std::vector<std::byte> block = encoded(older_header());
  EXPECT_EQ(
      hex(std::span(block).first(104)),
      "444151524543303108070605040302010100000032de0cc2000102030405060708090a0b0c0d0e0f070000000000000000002a"
      "36fe9c9717"
      "0a000000c0150000142f00000000000000000000804304410000000000005940010000000010000080f5e40900000000");
  EXPECT_EQ(libdeflate_crc32(0, block.data(), block.size()), 0xa3cf5634u);
}

TEST(RecordFormat, OlderTrailerBlockIsAsItWasDocumented) {
  const std::vector<std::byte> block = encoded(older_trailer());
  EXPECT_EQ(hex(std::span(block).first(128)),
            "444151454e44303101000000b5e0012a000102030405060708090a0b0c0d0e0f0500000000000000c06c000000000000"
            "01000000020000000"
            "0cac471fe9c9717030000000000000002000000000000000000000000000000040000000000000002000000000000000"
            "000000000000000000"
            "00000000000000100000000000000");
  EXPECT_EQ(libdeflate_crc32(0, block.data(), block.size()), 0xdf273703u);
}

TEST(RecordFormat, BlocksAreAsDocumented) {
  EXPECT_EQ(hex(std::span<const std::byte>(encoded(sample_header())).first(112)),
            "4441515245433031080706050403020101000000effa8c72000102030405060708090a0b0c0d0e0f0700000000000000"
            "00002a36fe9c97170a000000c0150000142f000000000000000000008043044100000000000059400100000000100000"
            "80f5e409000000000000000002000000");
  EXPECT_EQ(hex(std::span<const std::byte>(encoded(sample_trailer())).first(128)),
            "444151454e4430310200000029b10e1d000102030405060708090a0b0c0d0e0f0500000000000000c06c000000000000"
            "01000200effa8c7200cac471fe9c97170300000000000000020000000000000000000000000000000400000000000000"
            "0200000000000000000000000000000000000000000000000100000000000000");
}

TEST(RecordFormat, SuperchunkHeaderChecksumIsAsDocumented) {
  const SuperchunkHeader header{kSuperchunkMagic, 12345, counting_id(), 9, 8, 54216, 3, 5504, 0xdeadbeef, 1};
  EXPECT_EQ(header_crc(header), 0xe27445bcu);
}

TEST(RecordFormat, HeaderSurvivesARoundTripAndNoFlippedBit) {
  std::vector<std::byte> block = encoded(sample_header());
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

TEST(RecordFormat, WhatNoWriterWritesIsNamedWithItsValue) {
  const auto of_header = [](auto change) {
    RecordHeader header = sample_header();
    change(header);
    return fault(header);
  };
  EXPECT_EQ(of_header([](RecordHeader& h) { h.links = 127; }), "links is 127, not 1 to 126");
  EXPECT_EQ(of_header([](RecordHeader& h) { h.superchunk_bytes = 64; }),
            "superchunk_bytes is 64, not 65 to 67108864");
  EXPECT_EQ(of_header([](RecordHeader& h) { h.slots_per_link = 0; }),
            "slots per link is 0, not 1 to 18446744073709551615");
  // links x slots x size wraps to little.
  EXPECT_NE(of_header([](RecordHeader& h) {
              h.links = 2;
              h.slots_per_link = (1ull << 63) + 1;
              h.mode = RecordMode::triggered;
            }).find("slots per link is 9223372036854775809, of 5568 B each more than"),
            std::string::npos);
  EXPECT_NE(
      of_header([](RecordHeader& h) { h.intended_superchunks = 1ull << 60; }).find("intended superchunks"),
      std::string::npos);
  EXPECT_EQ(of_header([](RecordHeader& h) { h.alignment = 12288; }),
            "the alignment is 12288, not a power of two");
  EXPECT_EQ(of_header([](RecordHeader& h) { h.alignment = 1u << 31; }),
            "the alignment is 2147483648, not 4096 to 1048576");
  EXPECT_NE(of_header([](RecordHeader& h) { h.rate_hz = -1; }).find("the rate is -1"), std::string::npos);
  EXPECT_NE(of_header([](RecordHeader& h) { h.duration_s = std::nan(""); }).find("the duration is"),
            std::string::npos);
  RecordTrailer trailer = sample_trailer();
  trailer.superchunks = 6;
  EXPECT_EQ(fault(trailer), "its links' stored superchunks add up to 5, it says 6");
  trailer = sample_trailer();
  trailer.links[1].lost = UINT64_MAX;
  EXPECT_NE(fault(trailer).find("lost of a link is 18446744073709551615"), std::string::npos);
  trailer.links.clear();
  EXPECT_EQ(fault(trailer), "links is 0, not 1 to 126");
}

TEST(RecordFormat, ATrailerClosesTheRecordOfItsHeaderOnly) {
  RecordHeader header;
  ASSERT_EQ(decode_record_header(encoded(sample_header()), header), BlockCheck::valid);
  header.links = 2;
  RecordTrailer trailer = sample_trailer();
  const std::uint64_t place = 4096 + 28672;
  EXPECT_EQ(trailer_mismatch(header, trailer, place), std::nullopt);
  EXPECT_NE(trailer_mismatch(header, trailer, place + 4096), std::nullopt);
  trailer.header_crc = *trailer.header_crc + 1;
  EXPECT_NE(trailer_mismatch(header, trailer, place).value_or("").find("another header"), std::string::npos);
  EXPECT_NE(trailer_mismatch(header, older_trailer(), place), std::nullopt);
  header.trailer_version = 0;
  EXPECT_EQ(trailer_mismatch(header, older_trailer(), place), std::nullopt);
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
