// A good streams run, then one known damage each: the verifier must name its kind, its place and nothing
// else.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "streams/streams.h"
#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using Bytes = std::vector<std::byte>;
using Counts = std::map<std::string, std::uint64_t>;

class StreamVerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_run(run, 1);
    original = present(0);
    ASSERT_GT(original, 100u);
  }

  static void write_run(const std::string& target, std::uint8_t id) {
    StreamsOptions options;
    options.target = target;
    options.run.shares = {0.7, 0.3};
    options.run.event_bytes = 20'000;
    options.run.run_id[0] = id;
    options.random_run_id = false;
    options.bytes = 3'000'000;
    options.file_bytes = 500'000;
    options.queue_bytes = 256 << 10;
    options.block_bytes = 64 << 10;
    const std::atomic<int> never{0};
    const StreamsPlan plan = plan_streams(options);
    ASSERT_EQ(run_streams(options, plan, engine_factory(Engine::libaio), never).status, RunStatus::complete);
  }

  std::string path(const std::string& file) const { return run + "/" + file; }
  Bytes content(const std::string& file) const {
    return testing::read_bytes(path(file), 0, fs::file_size(path(file)));
  }
  void replace(const std::string& file, const Bytes& bytes) const {
    fs::resize_file(path(file), bytes.size());
    testing::write_bytes(path(file), 0, bytes);
  }
  // Where the n-th event of a file begins, and its header.
  struct Event {
    std::size_t offset = 0;
    EventHeader header{};
  };
  static std::vector<Event> events(const Bytes& bytes) {
    std::vector<Event> all;
    for (std::size_t offset = 0; offset < bytes.size(); offset += all.back().header.bytes) {
      all.push_back({offset, {}});
      std::memcpy(&all.back().header, bytes.data() + offset, sizeof(EventHeader));
    }
    return all;
  }
  static Bytes cut(const Bytes& bytes, const Event& event) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(event.offset);
    return {begin, begin + event.header.bytes};
  }
  static void insert(Bytes& bytes, std::size_t offset, const Bytes& more) {
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(offset), more.begin(), more.end());
  }
  static void erase(Bytes& bytes, std::size_t offset, std::size_t count) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  std::vector<std::string> manifest_lines() const {
    std::ifstream in(path(kManifestName));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  // With the seal of what now stands there, as if the writer had written it.
  void put_sealed(std::vector<std::string> lines) const {
    std::string all;
    lines.pop_back();
    for (const std::string& line : lines) all += line + "\n";
    const std::string seal = adler_text(checksum(ChecksumKind::crc32, std::as_bytes(std::span(all))));
    std::ofstream(path(kManifestName), std::ios::trunc) << all << "{\"crc32\":\"" << seal << "\"}\n";
  }
  // Replaces in the first line that contains it, and keeps the old seal.
  void replace_text(const std::string& old, const std::string& text) const {
    std::string all;
    for (const std::string& line : manifest_lines()) all += line + "\n";
    const std::size_t at = all.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    std::ofstream(path(kManifestName), std::ios::trunc) << all.replace(at, old.size(), text);
  }
  // The manifest without the lines that contain `part`, sealed again.
  void remove_lines(const std::string& part) const {
    std::vector<std::string> lines = manifest_lines();
    std::erase_if(lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
    put_sealed(lines);
  }
  std::string details() const {
    std::string all;
    for (const auto& fault : json["faults"]) all += fault["detail"].get<std::string>() + "\n";
    return all;
  }

  std::uint64_t present(int exit_code) {
    json = testing::verify_directory(directory, run, exit_code);
    return json["events"]["present"];
  }
  // Exactly these counts and faults, each event accounted for.
  void expect(const Counts& wrong, std::size_t faults) {
    present(3);
    EXPECT_EQ(json["status"], "damaged");
    Counts counts;
    for (const auto& [kind, count] : json["events"].items())
      if (kind != "present" && kind != "expected" && count != 0) counts[kind] = count;
    EXPECT_EQ(counts, wrong) << json.dump(1);
    EXPECT_EQ(json["faults"].size(), faults) << json.dump(1);
  }
  void expect_fault(std::size_t index, const std::string& kind, const std::string& file, std::uint64_t offset,
                    std::optional<std::uint64_t> serial) const {
    const auto& fault = json["faults"].at(index);
    EXPECT_EQ(fault["kind"], kind);
    EXPECT_EQ(fault["file"], file);
    EXPECT_EQ(fault["offset_bytes"], offset);
    if (serial) {
      EXPECT_EQ(fault["serial"], *serial);
    }
  }

  TempDir directory;
  const std::string run = directory.path("run");
  const std::string first = "run.0.1.events";  // neither the first nor the last of its stream
  std::uint64_t original = 0;
  nlohmann::json json;
};

TEST_F(StreamVerifyTest, AFlippedBitIsOneCorruptEventAtThatByte) {
  Bytes bytes = content(first);
  const Event event = events(bytes)[3];
  bytes[event.offset + 5000] ^= std::byte{1};
  replace(first, bytes);
  expect({{"corrupt", 1}}, 1);
  expect_fault(0, "corrupt", first, event.offset + 5000, event.header.serial);
  EXPECT_EQ(json["faults"][0]["stream"], 0);
  EXPECT_EQ(json["events"]["present"], original - 1);
  EXPECT_EQ(json["files"]["intact"].get<int>(), json["files"]["listed"].get<int>() - 1);
}

TEST_F(StreamVerifyTest, ADamagedHeaderIsOneCorruptEvent) {
  for (const std::size_t at : {offsetof(EventHeader, magic), offsetof(EventHeader, serial),
                               offsetof(EventHeader, bytes), offsetof(EventHeader, run_id)}) {
    const Bytes good = content(first);
    const Event event = events(good)[3];
    Bytes bytes = good;
    bytes[event.offset + at] ^= std::byte{4};
    replace(first, bytes);
    expect({{"corrupt", 1}}, 1);
    EXPECT_EQ(json["faults"][0]["serial"], event.header.serial);
    replace(first, good);
  }
}

TEST_F(StreamVerifyTest, ZeroedSectorsTearTheEventsAtTheirEdges) {
  Bytes bytes = content(first);
  const std::vector<Event> all = events(bytes);
  const std::size_t begin = all[5].offset / 4096 * 4096;
  const std::size_t end = begin + 10 * 4096;
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            bytes.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
  replace(first, bytes);
  Counts wrong;  // of an event that is gone as a whole, nothing is good: that is not a tear
  for (const Event& event : all) {
    const std::size_t last = event.offset + event.header.bytes;
    if (event.offset < end && last > begin)
      ++wrong[event.offset >= begin && last <= end ? "corrupt" : "torn"];
  }
  ASSERT_EQ(wrong["torn"], 2u);
  expect(wrong, wrong["torn"] + wrong["corrupt"]);
  expect_fault(0, "torn", first, begin, std::nullopt);
}

TEST_F(StreamVerifyTest, AnEventThatIsNotThereIsMissingWhereItWas) {
  Bytes bytes = content(first);
  const Event event = events(bytes)[3];
  erase(bytes, event.offset, event.header.bytes);
  replace(first, bytes);
  expect({{"missing", 1}}, 1);
  expect_fault(0, "missing", first, event.offset, event.header.serial);
}

TEST_F(StreamVerifyTest, ASecondCopyIsDuplicated) {
  Bytes bytes = content(first);
  const std::vector<Event> all = events(bytes);
  insert(bytes, all[6].offset, cut(bytes, all[3]));
  replace(first, bytes);
  expect({{"duplicated", 1}}, 1);
  expect_fault(0, "duplicated", first, all[6].offset, all[3].header.serial);
  EXPECT_EQ(json["events"]["present"], original);
}

TEST_F(StreamVerifyTest, ADisplacedEventIsOutOfOrder) {
  Bytes bytes = content(first);
  const std::vector<Event> all = events(bytes);
  const Bytes moved = cut(bytes, all[3]);
  insert(bytes, all[8].offset, moved);
  erase(bytes, all[3].offset, moved.size());
  replace(first, bytes);
  expect({{"out_of_order", 1}}, 1);
  expect_fault(0, "out_of_order", first, all[8].offset - moved.size(), all[3].header.serial);
  EXPECT_EQ(json["events"]["present"], original);
}

TEST_F(StreamVerifyTest, AnEventOfAnotherStreamIsOutOfOrder) {
  Bytes bytes = content(first);
  const Bytes other = content("run.1.0.events");
  const Event event = events(bytes)[3];
  insert(bytes, event.offset, cut(other, events(other)[2]));
  replace(first, bytes);
  expect({{"out_of_order", 1}}, 1);
  expect_fault(0, "out_of_order", first, event.offset, std::nullopt);
}

TEST_F(StreamVerifyTest, AnEventOfAnotherRunIsStale) {
  write_run(directory.path("other"), 2);
  const Bytes other = testing::read_bytes(directory.path("other") + "/run.0.0.events", 0, 200'000);
  Event stale;
  std::memcpy(&stale.header, other.data(), sizeof stale.header);
  const Bytes good = content(first);
  const Event event = events(good)[3];
  // In place of an event: its beginning, as far as there is room.
  Bytes bytes = good;
  const std::size_t room = std::min(stale.header.bytes, event.header.bytes);
  std::copy_n(other.begin(), room, bytes.begin() + static_cast<std::ptrdiff_t>(event.offset));
  replace(first, bytes);
  expect({{"stale", 1}}, 1);
  expect_fault(0, "stale", first, event.offset, event.header.serial);
  // In between.
  bytes = good;
  insert(bytes, event.offset, cut(other, stale));
  replace(first, bytes);
  expect({}, 1);
  expect_fault(0, "stale", first, event.offset, std::nullopt);
  EXPECT_EQ(json["events"]["present"], original);
}

TEST_F(StreamVerifyTest, AFileThatEndsTooEarlyIsTornAndMisses) {
  Bytes bytes = content(first);
  const std::vector<Event> all = events(bytes);
  const Event cut_event = all[all.size() - 3];
  bytes.resize(cut_event.offset + 1000);
  replace(first, bytes);
  expect({{"torn", 1}, {"missing", 2}}, 2);
  expect_fault(0, "torn", first, bytes.size(), cut_event.header.serial);
  expect_fault(1, "missing", "run.0.2.events", 0, cut_event.header.serial + 1);
}

TEST_F(StreamVerifyTest, TheLastFileCutAtTheEdgeOfAnEventMisses) {
  const std::string last = "run.1.1.events";
  Bytes bytes = content(last);
  const Event event = events(bytes).back();
  bytes.resize(event.offset);
  replace(last, bytes);
  expect({{"missing", 1}}, 1);
  expect_fault(0, "missing", last, event.offset, event.header.serial);
}

TEST_F(StreamVerifyTest, MissingFilesAreNamed) {
  std::uint64_t lost = 0;
  for (const std::string file : {"run.0.1.events", "run.0.2.events", "run.1.1.events"}) {
    lost += events(content(file)).size();
    fs::remove(path(file));
  }
  expect({{"missing", lost}}, 3);
  expect_fault(0, "missing", "run.0.1.events", 0, std::nullopt);
  expect_fault(1, "missing", "run.0.2.events", 0, std::nullopt);
  expect_fault(2, "missing", "run.1.1.events", 0, std::nullopt);
  EXPECT_EQ(json["files"]["missing"], 3);
  EXPECT_EQ(json["events"]["expected"], original);
}

TEST_F(StreamVerifyTest, AFileWithoutALineWasNotClosed) {
  const std::uint64_t unvouched = events(content(first)).size();
  const std::vector<std::string> whole = manifest_lines();
  remove_lines(first);
  expect({}, 2);  // the line behind it does not follow on
  expect_fault(0, "corrupt", kManifestName, json["faults"][0]["offset_bytes"], std::nullopt);
  expect_fault(1, "incomplete", first, 0, std::nullopt);
  EXPECT_EQ(json["unvouched_events"], unvouched);
  EXPECT_EQ(json["events"]["present"], original - unvouched);
  // A killed run looks like this: neither end nor seal.
  std::string begun;
  for (std::size_t i = 0; i + 2 < whole.size(); ++i) begun += whole[i] + "\n";
  std::ofstream(path(kManifestName), std::ios::trunc) << begun;
  expect({}, 1);
  expect_fault(0, "incomplete", kManifestName, begun.size(), std::nullopt);
}

TEST_F(StreamVerifyTest, ExtraFilesAreFound) {
  fs::copy_file(path(first), path("run.0.99.events"));
  std::ofstream(path("core")) << "dump";
  write_run(directory.path("other"), 2);
  fs::copy_file(directory.path("other") + "/run.1.0.events", path("run.1.98.events"));
  expect({}, 3);
  expect_fault(0, "stale", "core", 0, std::nullopt);
  expect_fault(1, "duplicated", "run.0.99.events", 0, std::nullopt);
  expect_fault(2, "stale", "run.1.98.events", 0, std::nullopt);
  EXPECT_EQ(json["events"]["present"], original);
}

TEST_F(StreamVerifyTest, ALyingManifestIsCorrupt) {
  const Manifest manifest = read_manifest(run);
  std::ifstream in(path(kManifestName));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  in.close();
  const std::string sum = adler_text(*manifest.files[0].adler32);
  text.replace(text.find(sum), sum.size(), "00000001");
  std::ofstream(path(kManifestName), std::ios::trunc) << text << "no JSON\n";
  expect({}, 3);
  expect_fault(0, "corrupt", kManifestName, text.rfind("{\"crc32\""), std::nullopt);
  expect_fault(1, "corrupt", kManifestName, text.size(), std::nullopt);
  expect_fault(2, "corrupt", manifest.files[0].name, manifest.files[0].bytes, std::nullopt);
  EXPECT_EQ(json["events"]["present"], original);
}

// Verify names each lie in a line of the manifest; also with the right seal over it, where it contradicts
// anything else.
TEST_F(StreamVerifyTest, EveryLieOfTheManifestIsNamed) {
  struct Lie {
    std::string old, text, named;
  };
  const Manifest manifest = read_manifest(run);
  const ClosedFile& last = manifest.files.back();
  const std::string bytes = std::to_string(last.bytes);
  const std::string counts =
      std::to_string(manifest.end->events[0]) + "," + std::to_string(manifest.end->events[1]);
  const std::vector<Lie> lies = {
      {"\"bytes\":" + bytes, "\"bytes\":" + bytes + "0",
       "bytes " + bytes + ", in the manifest " + bytes + "0"},
      {"\"events\":[" + counts, "\"events\":[1,1",
       "'events' of stream 0 is 1, the lines of its files end at"},
      {"\"end\":\"complete\"", "\"end\":\"banana\"", "'end' is \"banana\", not"},
      {"\"end\":\"complete\"", "\"end\":1e999", "number overflow"},
      {"\"adler32\":\"" + adler_text(*last.adler32) + "\"", "\"adler32\":null", "'adler32' is null here"},
      {"\"adler32\":\"" + adler_text(*last.adler32), "\"adler32\":\"0x12", "not 8 lower-case"},
      {"{\"file\":\"" + last.name, "{\"bytes\":1,\"file\":\"" + last.name, "'bytes' stands there twice"},
      {"\"file\":\"" + last.name, "\"file\":\"\xff", "ill-formed UTF-8"},
      {"\"bytes\":" + bytes, "\"bytes\":-1", "'bytes' is -1, not an integer from"},
      {"\"bytes\":" + bytes, "\"bytes\":1.5", "'bytes' is 1.5, not an integer from"},
      {"\"bytes\":" + bytes, "\"bytes\":NaN", "parse error"},
      {"\"bytes\":" + bytes, "\"bytes\":" + std::string(50'000, '['), "nested deeper"},
      {"\"bytes\":" + bytes, "\"bytes\":" + std::string(70'000, '1'), "longer than 65536 bytes"},
  };
  const std::vector<std::string> whole = manifest_lines();
  for (const Lie& lie : lies) {
    replace_text(lie.old, lie.text);
    present(3);
    EXPECT_NE(details().find(lie.named), std::string::npos) << lie.named << "\n" << details();
    put_sealed(manifest_lines());
    present(3);
    EXPECT_NE(details().find(lie.named), std::string::npos) << lie.named << ", sealed\n" << details();
    put_sealed(whole);
  }
  present(0);
}

TEST_F(StreamVerifyTest, LinesBehindTheEndAndASealThatIsWrongOrNotThereAreNamed) {
  const std::vector<std::string> whole = manifest_lines();
  std::vector<std::string> lines = whole;
  lines.insert(lines.end() - 1, lines[lines.size() - 2]);
  put_sealed(lines);
  present(3);
  EXPECT_NE(details().find("a second end"), std::string::npos) << details();
  put_sealed(whole);
  std::ofstream(path(kManifestName), std::ios::app) << whole.back() << "\n";
  present(3);
  EXPECT_NE(details().find("stands behind the seal"), std::string::npos) << details();
  put_sealed(whole);
  std::ofstream(path(kManifestName), std::ios::app) << std::string(3'000'000, 'x');
  present(3);
  EXPECT_NE(details().find("3000000 bytes without a line's end stand behind the seal"), std::string::npos)
      << details();
  put_sealed(whole);
  fs::resize_file(path(kManifestName), fs::file_size(path(kManifestName)) - whole.back().size() - 1);
  expect({}, 1);
  EXPECT_NE(details().find("no seal"), std::string::npos) << details();
}

TEST_F(StreamVerifyTest, AFileOrAStreamTakenOutOfManifestAndDirectoryIsNamed) {
  const std::string last = read_manifest(run).files.back().name;
  fs::remove(path(last));
  remove_lines(last);
  present(3);
  EXPECT_NE(details().find("the lines of its files end at"), std::string::npos) << details();
  for (const ClosedFile& file : read_manifest(run).files) {
    fs::remove(path(file.name));
    remove_lines(file.name);
  }
  remove_lines("\"end\"");
  std::vector<std::string> lines = manifest_lines();
  lines.insert(lines.end() - 1, "{\"end\":\"complete\",\"events\":[0,0]}");
  put_sealed(lines);
  expect({}, 1);
  EXPECT_NE(details().find("nothing to verify"), std::string::npos) << details();
}

TEST_F(StreamVerifyTest, AnOlderManifestIsIntactAndSaidToBeUnsealed) {
  EXPECT_EQ(json["sealed"], true);
  replace_text("\"version\":2", "\"version\":1");
  fs::resize_file(path(kManifestName),
                  fs::file_size(path(kManifestName)) - manifest_lines().back().size() - 1);
  EXPECT_EQ(present(0), original);
  EXPECT_EQ(json["sealed"], false);
  const auto result = testing::run_daqwriter({"verify", "--target", run});
  EXPECT_NE(result.error_text.find("not sealed (older format)"), std::string::npos) << result.error_text;
}

TEST_F(StreamVerifyTest, ANameThatIsNoTextIsAFaultAndTheResultIsStillJson) {
  std::ofstream(path("\xff\xfe")) << "x";
  expect({}, 1);
  expect_fault(0, "stale", json["faults"][0]["file"], 0, std::nullopt);
}

// Damage that looks like the beginnings of events everywhere is read through once.
TEST_F(StreamVerifyTest, AFileFullOfBeginningsIsJudgedInTime) {
  Bytes bytes = content(first);
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4)
    std::memcpy(bytes.data() + at, &kEventMagic, sizeof kEventMagic);
  replace(first, bytes);
  present(3);
  EXPECT_GT(json["events"]["corrupt"], 0);
}

TEST_F(StreamVerifyTest, BytesBehindTheEndAreCorrupt) {
  Bytes bytes = content(first);
  const std::size_t end = bytes.size();
  bytes.resize(end + 5000, std::byte{7});
  replace(first, bytes);
  expect({}, 1);
  EXPECT_EQ(json["faults"][0]["kind"], "corrupt");
  EXPECT_EQ(json["faults"][0]["file"], first);
  EXPECT_EQ(json["faults"][0]["offset_bytes"], end);
}

TEST_F(StreamVerifyTest, ARunThatWasSoughtAndIsNotThereIsLost) {
  RecordId id{};
  id[0] = 1;
  const auto seek = [&](const RecordId& which, std::uint64_t events) {
    return testing::verify(directory, run, 0, Sought{which, events});
  };
  EXPECT_EQ(seek(id, original).exit_code, 0);
  const auto expect_lost = [&](const RecordId& which, const std::string& kind) {
    const auto result = seek(which, original);
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.json["run_id"], record_id_text(which));
    EXPECT_EQ(result.json["events"]["missing"], original);
    EXPECT_EQ(result.json["events"]["present"], 0);
    EXPECT_EQ(result.json["faults"][0]["kind"], kind) << result.json.dump(1);
  };
  expect_lost({9}, "stale");
  fs::resize_file(path("manifest.jsonl"), 0);
  expect_lost(id, "incomplete");
  fs::remove(path("manifest.jsonl"));
  expect_lost(id, "incomplete");
}

TEST_F(StreamVerifyTest, ADirectoryWithoutAReadableManifestIsRefused) {
  const auto refuse = [&] { EXPECT_EQ(testing::run_daqwriter({"verify", "--target", run}).exit_code, 2); };
  std::ofstream(path(kManifestName), std::ios::trunc) << "{\"format\":\"daqwriter streams\",\"ver";
  refuse();
  std::ofstream(path(kManifestName), std::ios::trunc) << "{\"format\":\"other\"}\n";
  refuse();
  fs::remove(path(kManifestName));
  refuse();
}

}  // namespace
}  // namespace daqwriter
