// Where results go: never over what a command reads or writes, whole or not at all, and never unnoticed into
// nothing.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/status.h"
#include "report/line_protocol.h"
#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::run_daqwriter;
using testing::TempDir;

class ReportingTest : public ::testing::Test {
 protected:
  static std::vector<std::string> minidaq(std::vector<std::string> more) {
    more.insert(more.begin(), {"minidaq", "--links", "2", "--ring-size", "8MiB", "--duration", "0.2",
                               "--scale", "0.01", "--target"});
    return more;
  }
  static std::vector<std::string> streams(std::vector<std::string> more) {
    more.insert(more.begin(), {"streams", "--shares", "0.5,0.5", "--bytes", "8MiB", "--file-size", "4MiB",
                               "--event-size", "64KiB", "--target"});
    return more;
  }
  void make_record() const { ASSERT_EQ(run_daqwriter(minidaq({record})).exit_code, 0); }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void expect_refused(const std::vector<std::string>& arguments,
                             const std::string& part = "reads or writes") {
    const auto result = run_daqwriter(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.error_text;
    EXPECT_NE(result.error_text.find(part), std::string::npos) << result.error_text;
  }
  // By a shell, for what it does with the standard descriptors; a command that hangs is ended.
  static int exit_code_in_shell(const std::string& command) {
    const int status = std::system(("timeout 30 " DAQWRITER_BINARY " " + command).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TempDir directory;
  std::string record = directory.path("record");
  std::string json = directory.path("result.json");
};

TEST_F(ReportingTest, VerifyLeavesItsRecordAloneByWhateverNameItIsGiven) {
  make_record();
  const std::string before = content(record);
  fs::create_hard_link(record, directory.path("hard"));
  fs::create_symlink(record, directory.path("soft"));
  fs::create_symlink(directory.path(""), directory.path("here"));
  for (const std::string name : {"record", "./record", "hard", "soft", "here/record"}) {
    for (const std::string option : {"--json", "--line-protocol"}) {
      expect_refused({"verify", "--target", record, option, directory.path(name)});
      expect_refused({"verify", "--target", directory.path(name), option, record});
    }
  }
  EXPECT_EQ(exit_code_in_shell("verify --target " + record + " --json - >>" + record), 2);
  EXPECT_EQ(exit_code_in_shell("verify --target " + record + " 2>>" + record), 2);
  EXPECT_EQ(content(record), before);
  EXPECT_EQ(run_daqwriter({"verify", "--target", record, "--json", json}).exit_code, 0);
}

TEST_F(ReportingTest, NoCommandPutsItsResultsWhereItsDataWillBe) {
  expect_refused(minidaq({record, "--json", record}));
  expect_refused(minidaq({record, "--json", directory.path("./record")}));
  expect_refused(minidaq({record, "--line-protocol", record}));
  expect_refused(minidaq({record, "--applications", "2", "--json", record + ".1"}));
  expect_refused({"write", "--target", record, "--bytes", "8MiB", "--json", record});
  expect_refused(streams({record, "--json", record}));
  fs::create_directory(directory.path("empty"));
  expect_refused(streams({directory.path("empty"), "--json", directory.path("empty/manifest.jsonl")}));
  expect_refused(streams({directory.path("empty"), "--line-protocol", directory.path("empty/a")}));
  EXPECT_TRUE(fs::is_empty(directory.path("empty")));
  fs::remove(directory.path("empty"));
  EXPECT_TRUE(fs::is_empty(directory.path("")));
}

TEST_F(ReportingTest, ARunOfStreamsIsLeftAloneWithAllItsFiles) {
  const std::string run = directory.path("run");
  ASSERT_EQ(run_daqwriter(streams({run})).exit_code, 0);
  fs::create_hard_link(run + "/manifest.jsonl", directory.path("hard"));
  expect_refused({"verify", "--target", run, "--json", run + "/verify.json"});
  expect_refused({"verify", "--target", run, "--line-protocol", directory.path("hard")});
  EXPECT_EQ(run_daqwriter({"verify", "--target", run, "--json", json}).exit_code, 0);
}

TEST_F(ReportingTest, ResultsAreApartFromEachOther) {
  expect_refused(minidaq({record, "--json", json, "--line-protocol", json}));
  expect_refused({"write", "--sink", "null", "--duration", "0.1", "--json", json, "--line-protocol",
                  directory.path("./result.json")});
  fs::create_symlink(record, directory.path("dangling"));
  expect_refused(minidaq({record, "--line-protocol", directory.path("dangling")}), "dangling");
  EXPECT_FALSE(fs::exists(record));
}

TEST_F(ReportingTest, StandardOutputThatTakesNothingIsNoSuccess) {
  make_record();
  const std::string verify = "verify --target " + record + " --json - 2>" + directory.path("said");
  EXPECT_EQ(exit_code_in_shell(verify + " >/dev/full"), 1);
  EXPECT_NE(content(directory.path("said")).find("ENOSPC"), std::string::npos);
  EXPECT_EQ(exit_code_in_shell(verify + " >&-"), 2);
  EXPECT_NE(content(directory.path("said")).find("standard output is closed, or not open for writing"),
            std::string::npos);
  EXPECT_EQ(exit_code_in_shell(verify + " | grep -q intact"), 0);
}

// A target that is opened as descriptor 1 would get what is printed.
TEST_F(ReportingTest, AClosedDescriptorIsNotTheTargets) {
  EXPECT_EQ(exit_code_in_shell("write --keep --bytes 1MiB --block-size 64KiB --data zeros --target " +
                               record + " <&- >&- 2>&-"),
            0);
  EXPECT_EQ(content(record), std::string(1 << 20, '\0'));
}

TEST_F(ReportingTest, AFullFileSystemLeavesTheOldResultAndNoHalfOne) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  make_record();
  testing::make_mounts_private();
  const std::string small = directory.path("small");
  fs::create_directory(small);
  ASSERT_EQ(mount("none", small.c_str(), "tmpfs", 0, "size=8k"), 0) << errno_text(errno);
  std::ofstream(small + "/result.json") << "old";
  std::ofstream(small + "/rest") << std::string(8192, 'x');
  const auto result = run_daqwriter({"verify", "--target", record, "--json", small + "/result.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.error_text.find("ENOSPC"), std::string::npos) << result.error_text;
  EXPECT_EQ(content(small + "/result.json"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(small), fs::directory_iterator()), 2);
  umount(small.c_str());
}

TEST_F(ReportingTest, TheTemporaryFileFollowsNoPlantedLink) {
  const std::string precious = directory.path("precious");
  std::ofstream(precious) << "somebody's data";
  const auto result = run_daqwriter(minidaq({record, "--json", json}), [&](pid_t child) {
    fs::create_symlink(precious, json + ".tmp" + std::to_string(child));
  });
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_EQ(content(precious), "somebody's data");
  EXPECT_EQ(testing::read_json(json)["status"], "complete");
}

// A link that the user gives leads to the file that he means: the link stays.
TEST_F(ReportingTest, ALinkIsFollowedOnceAndStays) {
  make_record();
  std::ofstream(json) << "old";
  const std::string link = directory.path("link"), chain = directory.path("chain");
  fs::create_symlink("result.json", link);
  fs::create_symlink(link, chain);
  ASSERT_EQ(run_daqwriter({"verify", "--target", record, "--json", chain}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(chain));
  EXPECT_EQ(testing::read_json(json)["status"], "intact");
  fs::create_symlink("around", directory.path("around"));
  expect_refused({"verify", "--target", record, "--json", directory.path("around")},
                 "symbolic links lead on");
  EXPECT_EQ(exit_code_in_shell("verify --target " + record + " --json /proc/1/fd/1 2>/dev/null"), 2);
}

// As root, renaming a file onto /dev/stdout would take it from everybody.
TEST_F(ReportingTest, ADescriptorThatThePathNamesGetsTheResult) {
  make_record();
  const std::string device = fs::read_symlink("/dev/stdout").string();
  const std::string verify = "verify --target " + record + " --json ";
  EXPECT_EQ(exit_code_in_shell(verify + "/dev/stdout >" + json), 0);
  EXPECT_EQ(testing::read_json(json)["status"], "intact");
  EXPECT_EQ(exit_code_in_shell(verify + "/dev/stdout | grep -q intact"), 0);
  EXPECT_EQ(exit_code_in_shell(verify + "/dev/fd/7 7>" + directory.path("seven")), 0);
  EXPECT_EQ(testing::read_json(directory.path("seven"))["status"], "intact");
  for (const char* wrong : {"/dev/fd/7", "/dev/stdin </dev/null", "/dev/fd/word"})
    EXPECT_EQ(exit_code_in_shell(verify + wrong + " 2>/dev/null"), 2) << wrong;
  EXPECT_EQ(exit_code_in_shell(verify + "/dev/fd/7 7>>" + record), 2);
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
  EXPECT_EQ(fs::read_symlink("/dev/stdout").string(), device);
}

// As containers have it. Nothing can be renamed over a mount point.
TEST_F(ReportingTest, AFileThatIsMountedGetsTheResultInPlace) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a file";
  make_record();
  testing::make_mounts_private();
  const std::string outside = directory.path("outside");
  std::ofstream(outside) << std::string(100'000, 'x');
  std::ofstream(json) << "";
  ASSERT_EQ(mount(outside.c_str(), json.c_str(), nullptr, MS_BIND, nullptr), 0) << errno_text(errno);
  const auto result = run_daqwriter({"verify", "--target", record, "--json", json});
  umount(json.c_str());
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_EQ(testing::read_json(outside)["status"], "intact");
  EXPECT_TRUE(content(json).empty());
}

// The writer writes to what it held before the load, whatever has its name since.
TEST_F(ReportingTest, ResultsFollowNoNameThatIsPlantedDuringTheRun) {
  const std::string folder = directory.path("folder"), moved = directory.path("moved");
  const std::string precious = directory.path("precious"), lines = directory.path("lines");
  fs::create_directory(folder);
  std::ofstream(precious) << "somebody's data";
  const auto result =
      run_daqwriter(minidaq({record, "--json", folder + "/json", "--line-protocol", lines}), [&](pid_t) {
        testing::wait_for_lines(lines, 1);
        fs::rename(folder, moved);
        fs::create_symlink(precious, folder);
        fs::remove(lines);
        fs::create_symlink(precious, lines);
      });
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_EQ(content(precious), "somebody's data");
  EXPECT_EQ(testing::read_json(moved + "/json")["status"], "complete");
}

TEST_F(ReportingTest, LinesGoToNoLinkThatIsPlantedBeforeTheFirst) {
  const std::string precious = directory.path("precious"), lines = directory.path("lines");
  std::ofstream(precious) << "somebody's data";
  const OutputPath path(lines);
  path.hold_for_appending("--line-protocol", {});
  fs::create_symlink(precious, lines);
  EXPECT_THROW(LineProtocol(path, {}, "write"), Refusal);
  EXPECT_EQ(content(precious), "somebody's data");
  fs::remove(lines);
  LineProtocol(path, {}, "write").write("measured", {{"n", std::uint64_t{1}}});
  LineProtocol(path, {}, "write").write("measured", {{"n", std::uint64_t{2}}});  // as a search does
  const std::string text = content(lines);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

// A measurement that took hours is not lost because its file cannot be made.
TEST_F(ReportingTest, AResultThatItsFileDoesNotTakeGoesToStandardOutput) {
  const std::string folder = directory.path("folder"), out = directory.path("out");
  fs::create_directory(folder);
  EXPECT_EQ(
      exit_code_in_shell("minidaq --links 2 --ring-size 8MiB --duration 5 --scale 0.01 --target " + record +
                         " --json " + folder + "/json --line-protocol " + directory.path("lines") + " >" +
                         out + " 2>" + directory.path("said") + " & until test -s " +
                         directory.path("lines") + "; do sleep 0.01; done; rmdir " + folder + "; wait $!"),
      1);
  EXPECT_NE(content(directory.path("said")).find("the results went to standard output instead"),
            std::string::npos);
  const std::string said = content(out);
  EXPECT_EQ(nlohmann::json::parse(said.substr(said.find('{')))["status"], "complete");
}

TEST_F(ReportingTest, WhatIsNeitherFileNorBlockDeviceIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(record.c_str(), 0600), 0);
  for (const std::string& target : {record, std::string("/dev/zero")}) {
    for (const std::string command :
         {"verify", "write --bytes 1MiB", "minidaq --duration 1", "streams --bytes 8MiB"})
      EXPECT_EQ(exit_code_in_shell(command + " --target " + target + " 2>/dev/null"), 2) << command << target;
  }
  const std::string run = directory.path("run");
  fs::create_directory(run);
  ASSERT_EQ(mkfifo((run + "/manifest.jsonl").c_str(), 0600), 0);
  EXPECT_EQ(exit_code_in_shell("verify --target " + run + " 2>/dev/null"), 2);
}

}  // namespace
}  // namespace daqwriter
