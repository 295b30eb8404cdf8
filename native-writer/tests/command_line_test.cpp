// The real binary: exit codes, messages, and that a refusal leaves nothing behind.
#include <signal.h>

#include <fstream>

#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::ProcessResult;
using testing::run_daqwriter;
using testing::TempDir;

class CommandLineTest : public ::testing::Test {
 protected:
  // A small good record, with `more` options; its rings bear a disk that is busy for most of a second.
  std::vector<std::string> minidaq(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"minidaq", "--links", "2", "--ring-size", "8MiB", "--json", json};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void expect_refused(const ProcessResult& result, const std::string& part) const {
    EXPECT_EQ(result.exit_code, 2) << result.error_text;
    EXPECT_NE(result.error_text.find(part), std::string::npos) << result.error_text;
    EXPECT_FALSE(fs::exists(json));
  }

  TempDir directory;
  std::string target = directory.path("record");
  std::string json = directory.path("result.json");
};

TEST_F(CommandLineTest, RecordsAndVerifies) {
  nlohmann::json document;
  for (int trial = 1; trial <= 5; ++trial) {  // a machine that is busy for 0.3 s loses superchunks
    fs::remove(target);
    const ProcessResult result =
        run_daqwriter(minidaq({"--target", target, "--duration", "0.3", "--scale", "0.01"}));
    EXPECT_EQ(result.exit_code, 0) << result.error_text;
    document = testing::read_json(json);
    if (document["superchunks"]["stored"] == document["superchunks"]["intended"]) break;
  }
  EXPECT_EQ(document["status"], "complete");
  EXPECT_EQ(document["superchunks"]["intended"], 2 * 498);
  EXPECT_EQ(document["superchunks"]["stored"], 2 * 498);
  const std::string lines = directory.path("lines");
  EXPECT_EQ(run_daqwriter({"verify", "--target", target, "--json", json, "--line-protocol=" + lines,
                           "--tag=run=r1", "--tag=n=2"})
                .exit_code,
            0);
  std::ifstream in(lines);
  std::string line;  // the last one: a slow machine writes some before
  for (std::string each; std::getline(in, each);) line = each;
  EXPECT_TRUE(
      line.starts_with("daqwriter,command=verify,n=2,phase=verify,run=r1 read_bytes=5545984i,elapsed_s="))
      << line;
  testing::write_bytes(target, 9999, {std::byte{0}, std::byte{0}});
  EXPECT_EQ(run_daqwriter({"verify", "--target", target, "--json", json}).exit_code, 3);
}

TEST_F(CommandLineTest, ASignalEndsTheRecordInGoodOrder) {
  for (const int signal_number : {SIGINT, SIGTERM}) {
    fs::remove(target);
    const std::string lines = directory.path("lines" + std::to_string(signal_number));
    const ProcessResult result = run_daqwriter(
        minidaq({"--target", target, "--duration", "40", "--scale", "0.01", "--line-protocol", lines}),
        [&](pid_t child) {
          testing::wait_for_stored(lines);
          kill(child, signal_number);
        });
    EXPECT_EQ(result.exit_code, 130) << result.error_text;
    const auto document = testing::read_json(json);
    EXPECT_EQ(document["status"], "interrupted");
    EXPECT_GT(document["superchunks"]["stored"], 0);
    // A busy disk may lose some; what was accepted is drained.
    const auto& counts = document["superchunks"];
    EXPECT_EQ(counts["stored"].get<std::uint64_t>() + counts["lost"].get<std::uint64_t>(), counts["offered"]);
    EXPECT_LT(document["time"]["record_s"], 10);
    EXPECT_EQ(run_daqwriter({"verify", "--target", target, "--json", json}).exit_code, 0);
    EXPECT_EQ(testing::read_json(json)["trailer_status"], "interrupted");
  }
}

TEST_F(CommandLineTest, RefusesARecordThatDoesNotFitWithTheArithmetic) {
  const ProcessResult result =
      run_daqwriter(minidaq({"--target", target, "--duration", "86400", "--scale", "1"}));
  expect_refused(result, "record needs 1.849 GB/s x 86400 s = 1.597e+05 GB (159716966400000 B)");
  EXPECT_NE(result.error_text.find("use --duration <= "), std::string::npos);
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(CommandLineTest, NeverOverwritesAFile) {
  std::ofstream(target) << "somebody's data";
  expect_refused(run_daqwriter(minidaq({"--target", target, "--duration", "1", "--scale", "0.01"})),
                 "never overwritten");
  EXPECT_EQ(fs::file_size(target), 15u);
}

TEST_F(CommandLineTest, RefusesMemoryDirectoriesAndMissingOnes) {
  if (fs::exists("/dev/shm")) {
    expect_refused(
        run_daqwriter(minidaq({"--target", "/dev/shm/daqwriter-test", "--duration", "1", "--scale", "0.01"})),
        "memory-backed");
    EXPECT_FALSE(fs::exists("/dev/shm/daqwriter-test"));
  }
  expect_refused(run_daqwriter(minidaq({"--target", directory.path("no/where"), "--duration", "1"})),
                 "create the directory");
  fs::create_directory(directory.path("folder"));
  expect_refused(run_daqwriter(minidaq({"--target", directory.path("folder"), "--duration", "1"})),
                 "neither a new file nor a block device");
}

TEST_F(CommandLineTest, RefusesBadOptionsByName) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--duration", "1", "--block-size", "8M"}, "KiB, MiB"},
      {{"--duration", "1", "--block-size", "5000"}, "--block-size"},
      {{"--duration", "0"}, "--duration"},
      {{"--duration", "nan"}, "--duration"},
      {{"--duration", "1", "--links", "127"}, "--links"},
      {{"--duration", "1", "--writers", "0"}, "--writers"},
      {{"--duration", "1", "--writers", "3"}, "--writers 3"},
      {{"--duration", "1", "--writers", "nan"}, "--writers"},
      {{"--duration", "1", "--writers", "2", "--mode", "triggered", "--unpaced"}, "--mode continuous"},
      {{"--duration", "1", "--superchunk-bytes", "64"}, "--superchunk-bytes"},
      {{"--duration", "1", "--scale", "-1"}, "--scale"},
      {{"--duration", "1", "--ring-size", "5KiB"}, "--ring-size"},
      {{"--duration", "1", "--ring-size", "1TiB"}, "MemAvailable"},
      {{"--duration", "1", "--max-buffer", "1MiB"}, "--max-buffer"},
      {{"--duration", "1", "--checksum", "md5"}, "--checksum"},
      {{"--duration", "1", "--engine", "posix"}, "--engine"},
      {{"--duration", "1", "--record-id", "xyz"}, "--record-id"},
      {{"--duration", "1", "--tag", "oops"}, "--tag"},
      {{"--duration", "1", "--writer-cpu", "9999"}, "--writer-cpu"},
      {{"--duration", "1", "--line-protocol", directory.path("no/where")}, "--line-protocol"},
      {{}, "--duration"},
  };
  for (const auto& [options, part] : cases) {
    std::vector<std::string> arguments = minidaq({"--target", target});
    if (std::find(options.begin(), options.end(), "--ring-size") != options.end()) {
      arguments.erase(std::find(arguments.begin(), arguments.end(), "--ring-size"),
                      std::find(arguments.begin(), arguments.end(), "--json"));
    }
    arguments.insert(arguments.end(), options.begin(), options.end());
    expect_refused(run_daqwriter(arguments), part);
    EXPECT_FALSE(fs::exists(target));
  }
}

TEST_F(CommandLineTest, ADryRunChecksAndWritesNothing) {
  const ProcessResult result =
      run_daqwriter(minidaq({"--target", target, "--duration", "1", "--scale", "0.01", "--dry-run"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.error_text.find("would record 2 links"), std::string::npos) << result.error_text;
  EXPECT_FALSE(fs::exists(target));
  EXPECT_FALSE(fs::exists(json));
}

TEST_F(CommandLineTest, UnknownCommandsAndBadTargetsOfVerifyAreRefused) {
  EXPECT_EQ(run_daqwriter({}).exit_code, 2);
  EXPECT_EQ(run_daqwriter({"defrag"}).exit_code, 2);
  expect_refused(run_daqwriter({"verify", "--target", directory.path("none"), "--json", json}),
                 "cannot be opened");
  std::ofstream(target) << std::string(8192, 'x');
  expect_refused(run_daqwriter({"verify", "--target", target, "--json", json}),
                 "does not begin with a daqwriter record");
}

TEST_F(CommandLineTest, WhatVerifyIsToldOfTheWriterIsCheckedFirst) {
  const std::string id = "000102030405060708090a0b0c0d0e0f";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--record-id", ""}, "--record-id ''"},
      {{"--record-id", "NaN"}, "--record-id 'NaN'"},
      {{"--record-id", id + id}, "32 lower-case hexadecimal digits"},
      {{"--record-id", "000102030405060708090A0B0C0D0E0F"}, "32 lower-case hexadecimal digits"},
      {{"--record-id", id, "--record-id", id}, "--record-id"},
      {{"--superchunks", "5"}, "--record-id"},
      {{"--record-id", id, "--superchunks", "nan"}, "--superchunks nan"},
      {{"--record-id", id, "--superchunks", "-1"}, "--superchunks -1"},
      {{"--record-id", id, "--superchunks", "8MiB"}, "--superchunks 8MiB"},
      {{"--record-id", id, "--superchunks", "1", "--superchunks", "1"}, "--superchunks"},
      {{"--record-id", id, "--superchunks", "72057594037927936"}, "72057594037927935"},
  };
  std::ofstream(target) << std::string(8192, 'x');
  for (const auto& [more, said] : cases) {
    std::vector<std::string> words = {"verify", "--target", target, "--json", json};
    words.insert(words.end(), more.begin(), more.end());
    expect_refused(run_daqwriter(words), said);
  }
}

}  // namespace
}  // namespace daqwriter
