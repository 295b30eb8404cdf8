// Records that go wrong, by the real binary on the real kernel: full file systems, drives that fail, vanish
// or are pulled, a killed writer. Each time the command ends, its JSON says exactly what is on the disk, and
// `verify` finds just that.
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "base/status.h"
#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::LoopDevice;
using testing::ProcessResult;
using testing::run_daqwriter;
using testing::run_tool;
using testing::TempDir;

// Until so much of a sparse file has been written; not by the clock, for a sanitizer starts slowly.
void wait_for_bytes(const std::string& file, std::int64_t bytes) {
  struct stat status {};
  for (int i = 0; i < 2000 && (stat(file.c_str(), &status) != 0 || status.st_blocks * 512 < bytes); ++i)
    usleep(10'000);
}

class FaultTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_LOOP_DEVICES();
    testing::make_mounts_private();
  }
  // A drive of its own: a loop device, allowed by the serial that a udev database visible here only gives it.
  void make_drive(const std::string& backing, std::uint64_t bytes) {
    drive = std::make_unique<LoopDevice>(backing, bytes);
    ASSERT_EQ(mount("tmpfs", "/run", "tmpfs", 0, nullptr), 0) << errno_text(errno);
    testing::write_text("/run/udev/data/b" + drive->number().text(), "E:ID_SERIAL_SHORT=L1\n");
    target = drive->path();
  }
  // A small ext4 with one directory on it.
  void make_small_ext4(std::uint64_t bytes) {
    small = std::make_unique<LoopDevice>(directory.path("small"), bytes);
    run_tool("mkfs.ext4 -q -F -m 0 " + small->path());
    fs::create_directory(mnt);
    ASSERT_EQ(mount(small->path().c_str(), mnt.c_str(), "ext4", 0, nullptr), 0) << errno_text(errno);
  }
  void TearDown() override { umount2(mnt.c_str(), MNT_DETACH); }

  // 16.7 MB/s for `seconds`.
  ProcessResult record(
      const std::string& seconds, const std::vector<std::string>& more,
      const std::function<void(pid_t)>& meanwhile = [](pid_t) {}) {
    std::vector<std::string> arguments = {
        "minidaq", "--target",     target,     "--duration",     seconds, "--links",
        "3",       "--json",       json,       "--ring-size",    "4MiB",  "--superchunk-rate",
        "1000",    "--block-size", block_size, "--allow-serial", "L1",    "--destroy",
        "L1",      "--engine",     GetParam()};
    arguments.insert(arguments.end(), {"--line-protocol", lines});
    arguments.insert(arguments.end(), more.begin(), more.end());
    fs::remove(lines);
    return run_daqwriter(arguments, meanwhile);
  }
  // Read back. Unpaced: however slow the machine is, it loses nothing. Leaves no document.
  void make_whole_record(std::vector<std::string> more) {
    more.push_back("--unpaced");
    ASSERT_EQ(record("2", more).exit_code, 0);
    const std::uint64_t stored = testing::read_json(json)["superchunks"]["stored"];
    EXPECT_GT(stored, 5000u);
    EXPECT_EQ(read_back(0)["superchunks"]["present"], stored);
    fs::remove(json);
  }
  nlohmann::json read_back(int expected_exit) {
    const std::string file = directory.path("verify.json");
    const auto result = run_daqwriter({"verify", "--target", target, "--json", file});
    EXPECT_EQ(result.exit_code, expected_exit) << result.error_text;
    return testing::read_json(file);
  }
  static void expect_account(const nlohmann::json& document) {
    const auto& counts = document["superchunks"];
    const std::uint64_t stored = counts["stored"];
    EXPECT_EQ(counts["offered"].get<std::uint64_t>(),
              stored + counts["lost"].get<std::uint64_t>() + counts["abandoned"].get<std::uint64_t>());
    EXPECT_EQ(document["bytes"]["payload"], stored * 5568);
    EXPECT_GT(stored, 0u);
  }
  // The JSON of a failed record, and that verify agrees with it.
  void expect_failed_account(const ProcessResult& result, const std::vector<std::string>& said) {
    ASSERT_EQ(result.exit_code, 1) << result.error_text;
    const auto document = testing::read_json(json);
    EXPECT_EQ(document["status"], "failed");
    const std::string error = document["error"];
    const std::uint64_t stored = document["superchunks"]["stored"];
    for (const std::string& part : said) EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find("; the record is incomplete: " + std::to_string(stored)), std::string::npos)
        << error;
    expect_account(document);

    const auto verified = read_back(3);
    EXPECT_EQ(verified["complete_trailer"], false);
    EXPECT_EQ(verified["superchunks"]["missing"], 0);  // one request at a time: nothing lies behind a gap
    EXPECT_EQ(verified["superchunks"]["corrupt"], 0);
    EXPECT_EQ(verified["faults"].back()["kind"], "incomplete");
    // Beyond what is vouched for there is at most the block whose write failed in its middle.
    EXPECT_GE(verified["superchunks"]["present"], stored);
    EXPECT_LE(verified["superchunks"]["present"], stored + 65536 / 5568 + 1);
  }

  const TempDir directory{testing::memory()};  // no drive of a test waits for the machine's own disk
  std::string mnt = directory.path("mnt");
  std::string json = directory.path("result.json");
  std::string lines = directory.path("lines");
  std::string block_size = "64KiB";
  std::string target = mnt + "/record";
  std::unique_ptr<LoopDevice> small;
  std::unique_ptr<LoopDevice> drive;
};

TEST_P(FaultTest, AFileSystemThatBecomesFull) {
  make_small_ext4(64 << 20);
  const ProcessResult result = record("2.5", {"--preallocate", "none", "--io-depth", "1"}, [&](pid_t) {
    wait_for_bytes(target, 4 << 20);
    // Another file takes all the space that the record had counted on.
    std::ofstream other(mnt + "/other");
    const std::string megabyte(1 << 20, 'x');
    while (other.write(megabyte.data(), static_cast<std::streamsize>(megabyte.size())).flush()) {
    }
  });
  expect_failed_account(result, {"ENOSPC", target, "offset"});
  EXPECT_EQ(testing::read_json(json)["errno"], "ENOSPC");
}

// The file system stays, and the drive below it answers no more: what a pulled drive is to a record.
TEST_P(FaultTest, AFileWhoseDriveIsPulled) {
  make_small_ext4(128 << 20);
  const ProcessResult result = record("2.5", {"--io-depth", "1"}, [&](pid_t) {
    wait_for_bytes(directory.path("small"), 12 << 20);
    small->shorten(directory.path("small"), 1 << 20);
  });
  ASSERT_EQ(result.exit_code, 1) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["status"], "failed");
  EXPECT_EQ(document["errno"], "EIO") << document["error"];
  EXPECT_EQ(document["applications"][0]["errno"], "EIO");
  EXPECT_EQ(document["targets"][0]["errno"], "EIO");
  expect_account(document);
  // Whatever the file system still has in memory: the read-back finds the record broken, or is refused by the
  // drive.
  const std::string file = directory.path("verify.json");
  const auto found = run_daqwriter({"verify", "--target", target, "--json", file, "--record-id",
                                    document["parameters"]["record_id"], "--superchunks",
                                    std::to_string(document["superchunks"]["stored"].get<std::uint64_t>())});
  const auto verified = testing::read_json(file);
  EXPECT_TRUE(found.exit_code == 1 || found.exit_code == 3) << found.error_text;
  EXPECT_EQ(verified["record_id"], document["parameters"]["record_id"]);
  if (found.exit_code == 1) {
    EXPECT_EQ(verified["errno"], "EIO") << verified["error"];
  }
}

// Writes of one page, which the file system below takes or refuses: of a longer one it may take a part, and
// then the loop driver reports all of it as written (seen on Linux 6.18; only `verify` can find that out).
TEST_P(FaultTest, ADriveThatRefusesItsUpperHalf) {
  make_small_ext4(16 << 20);
  make_drive(mnt + "/backing", 32 << 20);  // sparse: half of it has nowhere to go
  block_size = "4KiB";
  expect_failed_account(record("1.8", {"--io-depth", "1"}), {target, "offset"});
}

TEST_P(FaultTest, ADriveThatVanishesInTheMiddle) {
  make_drive(directory.path("backing"), 64 << 20);
  const ProcessResult result = record("3.5", {"--io-depth", "1"}, [&](pid_t) {
    wait_for_bytes(directory.path("backing"), 8 << 20);
    drive->shorten(directory.path("backing"), 1 << 20);
  });
  ASSERT_EQ(result.exit_code, 1) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["status"], "failed");
  EXPECT_TRUE(document["errno"] == "EIO" || document["errno"] == "ENOSPC")
      << document["error"];  // it has no size left
  // The acknowledged data is gone, except below the new end; verify neither trusts more nor fails on less.
  const auto verified = read_back(3);
  EXPECT_EQ(verified["complete_trailer"], false);
  EXPECT_GE(verified["superchunks"]["present"], ((1 << 20) - 4096) / 5568);
  EXPECT_LT(verified["superchunks"]["present"], document["superchunks"]["stored"]);
}

TEST_P(FaultTest, AnInterruptionClosesTheRecord) {
  make_drive(directory.path("backing"), 256 << 20);
  const ProcessResult result = record("10", {}, [this](pid_t child) {
    testing::wait_for_lines(lines, 5);
    kill(child, SIGINT);
  });
  EXPECT_EQ(result.exit_code, 130) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["errno"], nullptr);
  const auto verified = read_back(0);
  EXPECT_EQ(verified["trailer_status"], "interrupted");
  EXPECT_EQ(verified["superchunks"]["present"], document["superchunks"]["stored"]);
  EXPECT_EQ(document["superchunks"]["abandoned"], 0);
}

// A record that was whole lies below: nothing of it may be taken for the killed one's.
TEST_P(FaultTest, AKilledWriterLeavesWhatItHadWrittenAndNoResult) {
  make_drive(directory.path("backing"), 64 << 20);
  make_whole_record({});
  const ProcessResult result = record("2", {}, [this](pid_t child) {
    testing::wait_for_stored(lines);
    kill(child, SIGKILL);
  });
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_FALSE(fs::exists(json));
  const auto verified = read_back(3);
  const std::uint64_t present = verified["superchunks"]["present"];
  EXPECT_EQ(verified["complete_trailer"], false);
  EXPECT_EQ(verified["faults"].back()["kind"], "incomplete");
  EXPECT_GT(present, 0u);
  EXPECT_LT(present, 6000u);
}

TEST_P(FaultTest, AKilledWriterOfAFile) {
  make_small_ext4(64 << 20);
  const ProcessResult result = record("2", {}, [this](pid_t child) {
    testing::wait_for_stored(lines);
    kill(child, SIGKILL);
  });
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_FALSE(fs::exists(json));
  const auto verified = read_back(3);
  EXPECT_EQ(verified["complete_trailer"], false);
  EXPECT_EQ(verified["faults"].back()["kind"], "incomplete");
  EXPECT_GT(verified["superchunks"]["present"], 0);
  EXPECT_EQ(verified["superchunks"]["stale"], 0);
}

// As above with two writers, of which each has a request at the drive: a gap may lie before what is there.
TEST_P(FaultTest, AFileSystemThatBecomesFullForTwoWriters) {
  make_small_ext4(64 << 20);
  const std::vector<std::string> more = {"--preallocate", "none", "--io-depth", "1", "--writers", "2"};
  const ProcessResult result = record("2.5", more, [&](pid_t) {
    wait_for_bytes(target, 4 << 20);
    std::ofstream other(mnt + "/other");
    const std::string megabyte(1 << 20, 'x');
    while (other.write(megabyte.data(), static_cast<std::streamsize>(megabyte.size())).flush()) {
    }
  });
  ASSERT_EQ(result.exit_code, 1) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["status"], "failed");
  const std::string error = document["error"];
  for (const std::string part : {"ENOSPC", "writer ", target.c_str(), "the record is incomplete"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  expect_account(document);
  const auto verified = read_back(3);
  EXPECT_EQ(verified["complete_trailer"], false);
  EXPECT_EQ(verified["faults"].back()["kind"], "incomplete");
  EXPECT_GE(verified["superchunks"]["present"], document["superchunks"]["stored"]);
  EXPECT_EQ(verified["superchunks"]["corrupt"], 0);
}

TEST_P(FaultTest, AnInterruptionOfTwoWritersClosesTheirRecord) {
  make_drive(directory.path("backing"), 256 << 20);
  const ProcessResult result = record("10", {"--writers", "2"}, [this](pid_t child) {
    testing::wait_for_lines(lines, 5);
    kill(child, SIGINT);
  });
  EXPECT_EQ(result.exit_code, 130) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["superchunks"]["abandoned"], 0);
  expect_account(document);
  const auto verified = read_back(0);
  EXPECT_EQ(verified["trailer_status"], "interrupted");
  EXPECT_EQ(verified["superchunks"]["present"], document["superchunks"]["stored"]);
}

// A framed record that was whole lies below, in one of two cases with the same id: nothing of it may count.
TEST_P(FaultTest, TwoKilledWritersLeaveWhatTheyHadWritten) {
  make_drive(directory.path("backing"), 64 << 20);
  for (const bool same_id : {false, true}) {
    const auto with_id = [&](char digit) {
      return std::vector<std::string>{"--writers", "2", "--record-id", std::string(32, digit)};
    };
    make_whole_record(with_id('a'));
    const ProcessResult result = record("2", with_id(same_id ? 'a' : 'b'), [this](pid_t child) {
      testing::wait_for_stored(lines);
      kill(child, SIGKILL);
    });
    EXPECT_EQ(result.exit_code, -1);
    EXPECT_FALSE(fs::exists(json));
    const auto verified = read_back(3);
    EXPECT_EQ(verified["complete_trailer"], false);
    EXPECT_EQ(verified["faults"].back()["kind"], "incomplete");
    EXPECT_GT(verified["superchunks"]["present"], 0);
    EXPECT_LT(verified["superchunks"]["present"], 6000);  // of its own; the longer one below had more
    EXPECT_EQ(verified["superchunks"]["duplicated"], 0) << verified.dump(1);
    EXPECT_EQ(verified["superchunks"]["out_of_order"], 0);
  }
}

// As much as there is room for, beside a second application's part.
TEST_P(FaultTest, WritersFillADriveAndNoBlockLiesBeyondIt) {
  make_drive(directory.path("backing"), 64 << 20);
  const ProcessResult result = record("20", {"--unpaced", "--writers", "3", "--applications", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_GT(document["superchunks"]["stored"], 9000);
  for (const auto& one : document["applications"]) {
    const std::string file = directory.path("verify.json");
    const std::uint64_t offset = one["offset_bytes"];
    const auto found =
        run_daqwriter({"verify", "--target", target, "--offset", std::to_string(offset), "--json", file});
    EXPECT_EQ(found.exit_code, 0) << found.error_text;
    EXPECT_EQ(testing::read_json(file)["superchunks"]["present"], one["stored"]);
  }
}

// `fresh` of a drive is what its discard makes of it: the loop device punches a hole, which reads as zeros.
TEST_P(FaultTest, FreshWritesDiscardTheirSpanFirst) {
  make_drive(directory.path("backing"), 16 << 20);
  const std::vector<std::byte> old(8 << 20, std::byte{0xaa});
  testing::write_bytes(target, 0, old);
  const auto write = [&](const char* condition) {
    return run_daqwriter({"write", "--target", target, "--allow-serial", "L1", "--destroy", "L1", "--span",
                          "4MiB", "--bytes", "1MiB", "--block-size", "64KiB", "--json", json, "--engine",
                          GetParam(), "--condition", condition});
  };
  const ProcessResult result = write("fresh");
  ASSERT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_EQ(testing::read_json(json)["parameters"]["target_kind"], "raw-device");
  EXPECT_EQ(testing::read_bytes(target, 1 << 20, 3 << 20), std::vector<std::byte>(3 << 20));
  EXPECT_EQ(testing::read_bytes(target, 4 << 20, 4 << 20), std::vector<std::byte>(4 << 20, std::byte{0xaa}));
}

INSTANTIATE_TEST_SUITE_P(Engines, FaultTest, ::testing::Values("libaio", "io_uring"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace daqwriter
