#include "base/units.h"

#include <gtest/gtest.h>

#include <random>

#include "base/status.h"

namespace daqwriter {
namespace {

TEST(Units, ReadsEveryUnitExactly) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("7B"), 7u);
  EXPECT_EQ(parse_size("1KiB"), 1024u);
  EXPECT_EQ(parse_size("8MiB"), 8388608u);
  EXPECT_EQ(parse_size("3GiB"), 3221225472u);
  EXPECT_EQ(parse_size("2TiB"), 2199023255552u);
  EXPECT_EQ(parse_size("8MB"), 8000000u);
  EXPECT_EQ(parse_size("9 GB"), 9000000000u);
  EXPECT_EQ(parse_size("1TB"), 1000000000000u);
}

TEST(Units, RefusesWhatCouldMeanTwoThingsAndSaysWhatToWrite) {
  for (const char* text : {"8k", "8K",  "8M", "8G", "8T",     "8kB",  "8KB", "8kb",    "8mb",   "8mib",
                           "",   "MiB", "-1", "+1", "1.5MiB", "0x10", " 8",  "8  MiB", "8MiB ", "8 "}) {
    try {
      const std::uint64_t size = parse_size(text);
      FAIL() << "'" << text << "' was read as " << size;
    } catch (const Refusal& refusal) {
      EXPECT_NE(std::string(refusal.what()).find("KiB, MiB, GiB"), std::string::npos) << refusal.what();
    }
  }
}

TEST(Units, RefusesWhatDoesNotFit64Bits) {
  EXPECT_EQ(parse_size("18446744073709551615"), UINT64_MAX);
  EXPECT_THROW(parse_size("18446744073709551616"), Refusal);
  EXPECT_EQ(parse_size("16777215TiB"), 16777215ull << 40);
  EXPECT_THROW(parse_size("16777216TiB"), Refusal);
}

TEST(Units, FormatThenParseGivesTheSameNumber) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t size = (random() >> (random() % 64)) << (random() % 41);
    EXPECT_EQ(parse_size(format_size(size)), size) << format_size(size);
  }
  EXPECT_EQ(format_size(8388608), "8MiB");
  EXPECT_EQ(format_size(8388609), "8388609B");
}

TEST(Units, SaysGigabytesInPowersOfTen) {
  EXPECT_EQ(format_gb(924.288e9), "924.3 GB");
  EXPECT_EQ(format_gb(9.24288e9), "9.243 GB");
}

}  // namespace
}  // namespace daqwriter
