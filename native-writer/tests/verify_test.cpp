// A good record, then one known damage each: the verifier must name its kind, its place and nothing else.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/status.h"
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

class VerifyTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSize = 5568;
  static constexpr std::uint64_t kCount = 3000;

  // A machine so busy that superchunks are lost records again: it is the verifier that is judged here.
  void SetUp() override {
    constexpr int kMostTries = 5;
    for (int i = 0; i < kMostTries; ++i) {
      std::filesystem::remove(target);
      if (testing::record(testing::small_record(target)).stored == kCount) break;
    }
    ASSERT_EQ(verify().exit_code, 0);
  }

  static std::uint64_t place(std::uint64_t index) { return 4096 + index * kSize; }
  std::vector<std::byte> superchunk(std::uint64_t index) const {
    return read_bytes(target, place(index), kSize);
  }
  SuperchunkHeader header(std::uint64_t index) const {
    SuperchunkHeader h;
    std::memcpy(&h, superchunk(index).data(), sizeof h);
    return h;
  }
  // The next superchunk behind `index` that belongs to the same link, `steps` further.
  std::uint64_t later_of_link(std::uint64_t index, int steps) const {
    const std::uint32_t link = header(index).link;
    while (steps > 0) steps -= header(++index).link == link;
    return index;
  }
  void flip(std::uint64_t offset) {
    auto bytes = read_bytes(target, offset, 1);
    bytes[0] ^= std::byte{1};
    write_bytes(target, offset, bytes);
  }
  void zero(std::uint64_t offset, std::size_t bytes) {
    write_bytes(target, offset, std::vector<std::byte>(bytes));
  }
  // The header or the trailer, with its checksum made right again.
  void put(RecordHeader h) {
    Bytes block(4096);
    encode_record_header(h, block);
    write_bytes(target, 0, block);
  }
  void put(const RecordTrailer& t) {
    Bytes block(4096);
    encode_trailer(t, block);
    write_bytes(target, std::filesystem::file_size(target) - 4096, block);
  }
  RecordTrailer trailer() const {
    RecordTrailer t;
    const Bytes block = read_bytes(target, std::filesystem::file_size(target) - 4096, 4096);
    EXPECT_EQ(decode_trailer(block, t), BlockCheck::valid);
    return t;
  }
  Verified verify() const { return testing::verify(directory, target); }

  // Exactly these counts, nothing else wrong, and every superchunk accounted for.
  Verified expect(const Counts& wrong) const {
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.json["status"], "damaged");
    EXPECT_EQ(result.wrong(), wrong) << result.json.dump(1);
    EXPECT_EQ(result.count("expected"), kCount);
    EXPECT_EQ(result.count("present") + result.count("missing") + result.count("corrupt") +
                  result.count("torn") + result.count("stale"),
              kCount);
    return result;
  }
  static void expect_fault(const nlohmann::json& fault, const std::string& kind, std::uint64_t offset) {
    EXPECT_EQ(fault["kind"], kind);
    EXPECT_EQ(fault["offset_bytes"], offset);
  }

  TempDir directory;
  std::string target = directory.path("record");
};

TEST_F(VerifyTest, AFlippedPayloadBitIsOneCorruptSuperchunkAtThatByte) {
  flip(place(700) + 3000);
  const auto faults = expect({{"corrupt", 1}}).json["faults"];
  ASSERT_EQ(faults.size(), 1u);
  expect_fault(faults[0], "corrupt", place(700) + 3000);
  EXPECT_EQ(faults[0]["link"], header(700).link);
  EXPECT_EQ(faults[0]["sequence"], header(700).sequence);
}

TEST_F(VerifyTest, AFlippedHeaderBitIsOneCorruptSuperchunk) {
  flip(place(701) + offsetof(SuperchunkHeader, sequence));
  expect_fault(expect({{"corrupt", 1}}).json["faults"][0], "corrupt", place(701));
  flip(place(701) + offsetof(SuperchunkHeader, sequence));
  flip(place(701) + offsetof(SuperchunkHeader, magic));
  expect_fault(expect({{"corrupt", 1}}).json["faults"][0], "corrupt", place(701));
}

TEST_F(VerifyTest, AWrongStoredChecksumIsCorruptEvenIfTheHeaderIsConsistent) {
  SuperchunkHeader h = header(5);
  h.payload_checksum ^= 1;
  h.header_crc = header_crc(h);
  std::vector<std::byte> bytes(sizeof h);
  std::memcpy(bytes.data(), &h, sizeof h);
  write_bytes(target, place(5), bytes);
  expect_fault(expect({{"corrupt", 1}}).json["faults"][0], "corrupt",
               place(5) + offsetof(SuperchunkHeader, payload_checksum));
}

TEST_F(VerifyTest, AZeroedBlockTearsTheSuperchunksItTouches) {
  const std::uint64_t block = 4096 * 1000;
  zero(block, 4096);
  const std::uint64_t first = (block - 4096) / kSize;
  const std::uint64_t last = (block + 4095 - 4096) / kSize;
  const auto faults = expect({{"torn", last - first + 1}}).json["faults"];
  EXPECT_EQ(faults[0]["kind"], "torn");
  EXPECT_NEAR(faults[0]["offset_bytes"].get<double>(), static_cast<double>(block),
              4);  // unless its first bytes are zero anyway
  EXPECT_NE(faults[0]["detail"].get<std::string>().find("all zero"), std::string::npos);
}

TEST_F(VerifyTest, EveryZeroedSectorIsFoundAsATear) {
  for (std::uint64_t sector = 2000; sector < 2022; ++sector) {  // all phases of 5568 against 512
    const auto before = read_bytes(target, sector * 512, 512);
    zero(sector * 512, 512);
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3) << sector;
    EXPECT_GE(result.count("torn"), 1u) << sector << result.json.dump(1);
    EXPECT_EQ(result.count("missing") + result.count("corrupt") + result.count("duplicated"), 0u)
        << sector << result.json.dump(1);
    write_bytes(target, sector * 512, before);
  }
}

TEST_F(VerifyTest, AZeroedMegabyteLosesExactlyWhatLayThere) {
  const std::uint64_t begin = 4096 * 500;
  zero(begin, 1 << 20);
  const std::uint64_t first = (begin - 4096) / kSize;
  const std::uint64_t last = (begin + (1 << 20) - 1 - 4096) / kSize;
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.count("present"), kCount - (last - first + 1));
  EXPECT_EQ(result.count("corrupt") + result.count("torn"), last - first + 1);
  EXPECT_EQ(result.count("missing") + result.count("duplicated") + result.count("out_of_order"), 0u)
      << result.json.dump(1);
}

TEST_F(VerifyTest, AnOlderBlockShowingThroughIsATear) {
  MiniDaqOptions other = testing::small_record(directory.path("other"));  // the same seed, another record id
  testing::record(other);
  const std::uint64_t block = 4096 * 800;
  write_bytes(target, block, read_bytes(other.target, block, 4096));
  const std::uint64_t touched = (block + 4095 - 4096) / kSize - (block - 4096) / kSize + 1;
  expect({{"torn", touched}});
}

TEST_F(VerifyTest, ASuperchunkOfAnotherRecordIsStale) {
  MiniDaqOptions other = testing::small_record(directory.path("other"));
  testing::record(other);
  write_bytes(target, place(900), read_bytes(other.target, place(900), kSize));
  const auto faults = expect({{"stale", 1}}).json["faults"];
  expect_fault(faults[0], "stale", place(900));
}

TEST_F(VerifyTest, TwoSwappedSuperchunksOfALinkAreOutOfOrder) {
  const std::uint64_t first = 1000;
  const std::uint64_t second = later_of_link(first, 5);
  const auto a = superchunk(first);
  write_bytes(target, place(first), superchunk(second));
  write_bytes(target, place(second), a);
  const auto faults = expect({{"out_of_order", 2}}).json["faults"];
  ASSERT_EQ(faults.size(), 2u);
  expect_fault(faults[0], "out_of_order", place(first));
  expect_fault(faults[1], "out_of_order", place(second));
}

TEST_F(VerifyTest, ACopyOverAnotherIsADuplicateAndAMissingOne) {
  const std::uint64_t original = 1500;
  const std::uint64_t victim = later_of_link(original, 3);
  const std::uint64_t sequence = header(victim).sequence;
  write_bytes(target, place(victim), superchunk(original));
  const auto faults = expect({{"duplicated", 1}, {"missing", 1}}).json["faults"];
  expect_fault(faults[0], "duplicated", place(victim));
  EXPECT_EQ(faults[1]["kind"], "missing");
  EXPECT_EQ(faults[1]["sequence"], sequence);
}

TEST_F(VerifyTest, ATruncatedRecordIsIncompleteAndCounted) {
  std::filesystem::resize_file(target, place(2000) + 100);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.json["complete_trailer"], false);
  // The last one or two may end in the part of a block that direct reading leaves out.
  EXPECT_LE(result.count("present"), 2000u);
  EXPECT_GE(result.count("present"), 1999u);
  EXPECT_EQ(result.wrong(), Counts{});
  EXPECT_EQ(result.json["faults"][0]["kind"], "incomplete");
}

TEST_F(VerifyTest, WithoutATrailerAnEndOfZerosIsNotTakenForDamage) {
  const std::uint64_t end = std::filesystem::file_size(target);
  zero(4096 * 2000, end - 4096 * 2000);  // as a preallocated file looks after a crash
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.json["complete_trailer"], false);
  EXPECT_EQ(result.count("present"), (4096 * 2000 - 4096) / kSize);
  EXPECT_LE(result.count("torn"), 1u);
  EXPECT_EQ(result.count("corrupt") + result.count("missing"), 0u);
}

TEST_F(VerifyTest, ADamagedTrailerIsNoTrailer) {
  flip(std::filesystem::file_size(target) - 4096 + 70);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.json["complete_trailer"], false);
  EXPECT_EQ(result.count("present"), kCount);
  EXPECT_EQ(result.wrong(), Counts{});
}

TEST_F(VerifyTest, ADamagedRecordHeaderIsSaidAndNothingElseIsTrusted) {
  flip(40);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  expect_fault(result.json["faults"][0], "corrupt", 0);
  EXPECT_EQ(result.count("expected"), 0u);
}

TEST_F(VerifyTest, ATrailerThatHidesALossIsFoundOut) {
  const std::uint64_t at = std::filesystem::file_size(target) - 4096;
  RecordTrailer trailer;
  ASSERT_EQ(decode_trailer(read_bytes(target, at, 4096), trailer), BlockCheck::valid);
  // The last superchunk of the record claims a sequence seven further on: seven skipped, none counted as
  // lost.
  SuperchunkHeader h = header(kCount - 1);
  h.sequence += 7;
  h.header_crc = header_crc(h);
  std::vector<std::byte> bytes(sizeof h);
  std::memcpy(bytes.data(), &h, sizeof h);
  write_bytes(target, place(kCount - 1), bytes);
  EXPECT_EQ(verify().count("missing"), 7u);
  trailer.links[h.link].lost = 7;
  trailer.links[h.link].last_sequence = h.sequence;
  std::vector<std::byte> block(4096);
  encode_trailer(trailer, block);
  write_bytes(target, at, block);
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(VerifyTest, AHeaderThatAsksForTooMuchIsNamedAndNothingIsAllocated) {
  RecordHeader h;
  ASSERT_EQ(decode_record_header(read_bytes(target, 0, 4096), h), BlockCheck::valid);
  std::filesystem::resize_file(target, 12288);
  h.links = 2;
  h.mode = RecordMode::triggered;
  h.slots_per_link = (1ull << 63) + 1;
  put(h);
  const Verified wrapped = verify();
  EXPECT_EQ(wrapped.exit_code, 3);
  EXPECT_NE(wrapped.json["faults"][0]["detail"].get<std::string>().find("9223372036854775809"),
            std::string::npos);
  for (const RecordMode mode : {RecordMode::triggered, RecordMode::continuous}) {
    h.mode = mode;
    h.slots_per_link = 1ull << 40;
    h.intended_superchunks = 1ull << 48;
    put(h);
    const Verified large = verify();
    EXPECT_EQ(large.exit_code, 3);
    EXPECT_EQ(large.json["faults"].back()["kind"], "incomplete") << large.json.dump(1);
  }
}

TEST_F(VerifyTest, WhatStandsBehindAFilesTrailerIsNamed) {
  const std::uint64_t end = std::filesystem::file_size(target);
  const auto trailer = read_bytes(target, end - 4096, 4096);
  for (const auto& more : {testing::random_bytes(4096), trailer, testing::random_bytes(5), Bytes(8192)}) {
    std::filesystem::resize_file(target, end + more.size());
    write_bytes(target, end, more);
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    ASSERT_EQ(result.json["faults"].size(), 1u) << result.json.dump(1);
    expect_fault(result.json["faults"][0], "corrupt", end);
    EXPECT_EQ(result.count("present"), kCount);
    std::filesystem::resize_file(target, end);
  }
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(VerifyTest, AFlippedBitOfThePaddingIsNamed) {
  const std::uint64_t trailer = std::filesystem::file_size(target) - 4096;
  ASSERT_LT(place(kCount), trailer);
  for (const std::uint64_t at : {place(kCount), (place(kCount) + trailer) / 2, trailer - 1}) {
    flip(at);
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    ASSERT_EQ(result.json["faults"].size(), 1u);
    expect_fault(result.json["faults"][0], "corrupt", at);
    flip(at);
  }
}

TEST_F(VerifyTest, ATrailerWhoseLinksDoNotAddUpIsNone) {
  RecordTrailer t = trailer();
  ++t.links[1].stored;
  put(t);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.json["faults"].back()["detail"].get<std::string>().find("add up to 3001, it says 3000"),
            std::string::npos);
}

TEST_F(VerifyTest, ATrailerWhoseSequencesAreNotThoseOfTheRecordIsDamage) {
  for (const auto field : {&LinkAccount::first_sequence, &LinkAccount::last_sequence}) {
    RecordTrailer t = trailer();
    t.links[1].*field += 1;
    put(t);
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    ASSERT_EQ(result.json["faults"].size(), 1u) << result.json.dump(1);
    EXPECT_EQ(result.json["faults"][0]["link"], 1);
    EXPECT_NE(result.json["faults"][0]["detail"].get<std::string>().find("stored sequence is"),
              std::string::npos);
    EXPECT_EQ(result.count("present"), kCount);
    t.links[1].*field -= 1;
    put(t);
  }
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(VerifyTest, ATrailerOfAnotherHeaderIsNone) {
  RecordTrailer t = trailer();
  for (const auto& crc : {std::optional(*t.header_crc + 1), std::optional<std::uint32_t>()}) {
    t.header_crc = crc;
    put(t);
    const Verified result = verify();
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.json["complete_trailer"], false);
  }
}

TEST_F(VerifyTest, AnOlderRecordIsIntactAndItsTrailerSaidToBeUnbound) {
  EXPECT_EQ(verify().json["trailer_bound"], true);
  RecordHeader h;
  ASSERT_EQ(decode_record_header(read_bytes(target, 0, 4096), h), BlockCheck::valid);
  h.trailer_version = 0;
  put(h);
  RecordTrailer t = trailer();
  t.header_crc.reset();
  put(t);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.json.dump(1);
  EXPECT_EQ(result.json["trailer_bound"], false);
}

TEST_F(VerifyTest, ARecordWithoutASuperchunkIsNotIntact) {
  RecordTrailer t = trailer();
  t.superchunks = t.data_bytes = 0;
  for (LinkAccount& link : t.links) link = {};
  std::filesystem::resize_file(target, 8192);
  put(t);
  const Verified result = verify();
  EXPECT_EQ(result.exit_code, 3);
  expect_fault(result.json["faults"][0], "incomplete", 4096);
}

TEST_F(VerifyTest, AHeaderThatIntendsNoSuperchunkBeforeSomeIsDamageAndNoCrash) {
  RecordHeader h;
  ASSERT_EQ(decode_record_header(read_bytes(target, 0, 4096), h), BlockCheck::valid);
  h.intended_superchunks = 0;
  put(h);
  flip(place(0) + 100);
  EXPECT_EQ(verify().exit_code, 3);
}

TEST_F(VerifyTest, WhatIsNoRecordIsRefused) {
  zero(0, 4096);
  EXPECT_THROW(verify(), Refusal);
}

// Sought: the record that its writer told of.
class SoughtTest : public VerifyTest {
 protected:
  void SetUp() override {
    VerifyTest::SetUp();
    ASSERT_EQ(decode_record_header(read_bytes(target, 0, 4096), head), BlockCheck::valid);
    sought = {head.record_id, kCount};
  }
  Verified seek(const std::optional<Sought>& what) const {
    return testing::verify(directory, target, 0, what);
  }
  // All of it is missing, and why is said in the first fault.
  void expect_lost(const std::string& kind, const std::string& why) const {
    const Verified result = seek(sought);
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.json["status"], "damaged");
    EXPECT_EQ(result.json["error"], nullptr);
    EXPECT_EQ(result.json["record_id"], record_id_text(sought.id));
    EXPECT_EQ(result.json["complete_trailer"], false);
    EXPECT_EQ(result.wrong(), Counts({{"missing", kCount}}));
    EXPECT_EQ(result.count("expected"), kCount);
    expect_fault(result.json["faults"][0], kind, 0);
    const std::string detail = result.json["faults"][0]["detail"];
    EXPECT_NE(detail.find(why), std::string::npos) << detail;
    // The number is not needed to know that it is lost.
    EXPECT_EQ(seek(Sought{sought.id, std::nullopt}).exit_code, 3);
  }

  RecordHeader head;
  Sought sought;
};

TEST_F(SoughtTest, ARecordThatIsThereIsFound) {
  for (const auto& count : {std::optional<std::uint64_t>(kCount), std::optional<std::uint64_t>()}) {
    const Verified result = seek(Sought{head.record_id, count});
    EXPECT_EQ(result.exit_code, 0) << result.json.dump(1);
    EXPECT_EQ(result.count("present"), kCount);
    EXPECT_EQ(result.json["other_record"], nullptr);
  }
}

TEST_F(SoughtTest, AHeadThatIsLostLosesAllThatWasStored) {
  zero(0, 4096);
  expect_lost("incomplete", "zeros stand there");
  write_bytes(target, 0, Bytes(4096, std::byte{'x'}));
  expect_lost("incomplete", "other data stand there");
  put(head);
  zero(512, 512);
  flip(50);
  expect_lost("corrupt", "its own checksum is wrong");
  std::filesystem::resize_file(target, 4095);
  expect_lost("incomplete", "the target ends before it");
  std::filesystem::resize_file(target, 0);
  expect_lost("incomplete", "the target ends before it");
}

TEST_F(SoughtTest, AnotherRecordInItsPlaceIsNamed) {
  RecordHeader other = head;
  other.record_id[3] ^= 1;
  put(other);
  expect_lost("stale", "is of record " + record_id_text(other.record_id));
  const auto found = seek(sought).json["other_record"];
  EXPECT_EQ(found["record_id"], record_id_text(other.record_id));
  EXPECT_EQ(found["started_utc"], iso8601_utc(other.started_utc_ns));
}

TEST_F(SoughtTest, WhatIsLostWithTheTrailerIsMissing) {
  std::filesystem::resize_file(target, place(1000));
  EXPECT_EQ(verify().count("missing"), 0u);  // without the writer's word nobody knows of it
  const Verified result = seek(sought);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.count("present") + result.count("missing") + result.count("torn"), kCount);
  EXPECT_GE(result.count("missing"), 1999u);
  EXPECT_EQ(result.count("expected"), kCount);
}

TEST_F(SoughtTest, ANumberThatTheTrailerContradictsIsRefused) {
  for (const std::uint64_t count : {kCount - 1, kCount + 1, std::uint64_t{0}})
    EXPECT_THROW(seek(Sought{head.record_id, count}), Refusal);
}

TEST_F(SoughtTest, ATargetThatCannotBeOpenedHasFailed) {
  std::filesystem::remove(target);
  EXPECT_THROW(verify(), Refusal);
  const Verified result = seek(sought);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.json["status"], "failed");
  EXPECT_EQ(result.json["errno"], "ENOENT");
  EXPECT_EQ(result.json["record_id"], record_id_text(sought.id));
  EXPECT_EQ(result.wrong(), Counts());
}

}  // namespace
}  // namespace daqwriter
