// A file as the target: what was made is what is written, vouched for and removed, whatever becomes of its
// name.
#include "target/target.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>

#include <cstdlib>
#include <fstream>

#include "base/status.h"
#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::run_daqwriter;
using testing::TempDir;

class TargetTest : public ::testing::Test {
 protected:
  // Until `change` was made in mid-run, and a signal has ended the run.
  testing::ProcessResult run(std::vector<std::string> arguments, const std::function<void()>& change) {
    arguments.insert(arguments.end(), {"--json", json, "--line-protocol", lines});
    return run_daqwriter(arguments, [&](pid_t child) {
      testing::wait_for_lines(lines, 3);
      change();
      kill(child, SIGINT);
    });
  }
  void expect_failed(const testing::ProcessResult& result,
                     const std::string& part = "removed, renamed or replaced") const {
    EXPECT_EQ(result.exit_code, 1) << result.error_text;
    const auto document = testing::read_json(json);
    EXPECT_EQ(document["status"], "failed");
    const std::string error = document["error"].is_string() ? document["error"] : "";
    EXPECT_NE(error.find(part), std::string::npos) << document.dump(1);
  }
  bool punch_hole() const {
    const int fd = open(target.c_str(), O_RDWR | O_CLOEXEC);
    const int done = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536);
    close(fd);
    return done == 0;
  }
  std::vector<std::string> write(std::vector<std::string> more) const {
    more.insert(more.begin(), {"write", "--target", target, "--duration", "40", "--condition", "overwrite",
                               "--span", "16MiB", "--block-size", "64KiB"});
    return more;
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TempDir directory;
  std::string target = directory.path("file");
  std::string json = directory.path("result.json");
  std::string lines = directory.path("lines");
};

TEST_F(TargetTest, AForeignFileThatTookItsNameStays) {
  expect_failed(run(write({}), [&] {
    fs::rename(target, target + ".moved");
    std::ofstream(target) << "precious";
  }));
  EXPECT_EQ(content(target), "precious");
  EXPECT_TRUE(fs::exists(target + ".moved"));
}

TEST_F(TargetTest, AWriteWhoseFileVanishedDidNotComplete) {
  expect_failed(run(write({"--keep"}), [&] { fs::remove(target); }));
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(TargetTest, ItsOwnFileIsRemovedFromADirectoryThatWasRenamed) {
  fs::create_directory(directory.path("in"));
  target = directory.path("in/file");
  expect_failed(run(write({}), [&] { fs::rename(directory.path("in"), directory.path("out")); }));
  EXPECT_TRUE(fs::is_empty(directory.path("out")));
}

TEST_F(TargetTest, ARecordWhoseFileVanishedDidNotComplete) {
  const std::vector<std::string> minidaq = {"minidaq", "--target",   target, "--links", "2",   "--ring-size",
                                            "8MiB",    "--duration", "40",   "--scale", "0.01"};
  expect_failed(run(minidaq, [&] { fs::rename(target, target + ".moved"); }));
  EXPECT_TRUE(fs::exists(target + ".moved"));
}

// The header is on the medium before the first superchunk: that much is gone whatever the machine's speed.
TEST_F(TargetTest, ARecordThatAnotherProcessTookDataOutOfDidNotComplete) {
  const std::vector<std::string> minidaq = {"minidaq", "--target",   target, "--links", "2",   "--ring-size",
                                            "8MiB",    "--duration", "40",   "--scale", "0.01"};
  const std::vector<std::function<bool()>> changes = {
      [&] { return punch_hole(); },
      [&] { return truncate(target.c_str(), 0) == 0; },
  };
  for (const auto& change : changes) {
    fs::remove(lines);
    fs::remove(target);
    bool changed = false;
    const auto result = run(minidaq, [&] { changed = change(); });
    ASSERT_TRUE(changed);
    expect_failed(result, "the first hole is at offset 0;");
  }
}

// Each block is written once, so that nothing fills the hole again.
TEST_F(TargetTest, AWriteThatAnotherProcessTookDataOutOfDidNotComplete) {
  const std::vector<std::string> once = {"write", "--target",     target, "--duration", "40", "--span",
                                         "1GiB",  "--block-size", "4KiB", "--io-depth", "1"};
  bool changed = false;
  const auto result = run(once, [&] { changed = punch_hole(); });
  ASSERT_TRUE(changed);
  expect_failed(result, "the first hole is at offset 0;");
}

TEST_F(TargetTest, AStreamsRunWhoseFilesOrDirectoryVanishedDidNotComplete) {
  const std::string run_directory = directory.path("run");
  const std::vector<std::string> streams = {
      "streams", "--target",     run_directory, "--shares",    "0.5,0.5", "--duration",    "40",  "--rate",
      "20MB",    "--event-size", "64KiB",       "--file-size", "1GiB",    "--preallocate", "none"};
  const std::vector<std::function<void()>> changes = {
      [&] { fs::remove(run_directory + "/run.0.0.events"); },
      [&] { fs::rename(run_directory, run_directory + ".moved"); },
  };
  for (const auto& change : changes) {
    fs::remove(lines);
    fs::remove_all(run_directory);
    expect_failed(run(streams, change));
  }
}

// The path leads to memory after the look: the file is made where the look was.
TEST_F(TargetTest, IsMadeInTheDirectoryThatWasExamined) {
  if (!fs::exists("/dev/shm")) GTEST_SKIP() << "no memory-backed directory here";
  const std::string link = directory.path("link");
  const std::string name = "daqwriter-test-" + std::to_string(getpid());
  fs::create_directory(directory.path("disk"));
  fs::create_directory_symlink(directory.path("disk"), link);
  const TargetPlan plan = plan_target(link + "/" + name, {});
  fs::remove(link);
  fs::create_directory_symlink("/dev/shm", link);
  {
    const Target opened(plan, 1 << 20, true);
    EXPECT_TRUE(fs::exists(directory.path("disk/" + name)));
    EXPECT_FALSE(fs::exists("/dev/shm/" + name));
    EXPECT_THROW(opened.require_in_place(), Failure);
  }
  EXPECT_TRUE(fs::is_empty(directory.path("disk")));
}

// A power cut at the end of the command leaves the drive as it is then, without the data that is only in
// memory.
TEST_F(TargetTest, ARecordIsOnTheMediumInItsFinalSizeWhenTheCommandEnds) {
  SKIP_WITHOUT_LOOP_DEVICES();
  constexpr std::uint64_t kBytes = 128 << 20;
  testing::make_mounts_private();
  const std::string backing = directory.path("backing");
  const std::string image = directory.path("image");
  const std::string point = directory.path("mnt");
  fs::create_directory(point);
  {
    const testing::LoopDevice drive(backing, kBytes);
    testing::run_tool("mkfs.ext4 -q -F " + drive.path());
    // Nothing is committed but what is asked for.
    ASSERT_EQ(mount(drive.path().c_str(), point.c_str(), "ext4", 0, "commit=600"), 0) << errno_text(errno);
    const auto result =
        run_daqwriter({"minidaq", "--target", point + "/record", "--links", "2", "--ring-size", "8MiB",
                       "--unpaced", "--bytes", "64MiB", "--duration", "20", "--json", json});
    EXPECT_EQ(result.exit_code, 0) << result.error_text;
    fs::copy_file(backing, image);
    target = std::to_string(fs::file_size(point + "/record"));
    umount2(point.c_str(), MNT_DETACH);
  }
  const testing::LoopDevice after(image, kBytes);
  ASSERT_EQ(mount(after.path().c_str(), point.c_str(), "ext4", 0, nullptr), 0) << errno_text(errno);
  EXPECT_EQ(std::to_string(fs::file_size(point + "/record")), target);
  EXPECT_EQ(run_daqwriter({"verify", "--target", point + "/record", "--json", json}).exit_code, 0);
  umount(point.c_str());
}

}  // namespace
}  // namespace daqwriter
