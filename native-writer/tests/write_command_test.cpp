// `daqwriter write` as its user meets it: refusals by name that leave nothing behind, and a signal.
#include <signal.h>

#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::run_daqwriter;
using testing::TempDir;

class WriteCommandTest : public ::testing::Test {
 protected:
  std::vector<std::string> write(std::vector<std::string> more) const {
    more.insert(more.begin(), {"write", "--json", json});
    return more;
  }
  TempDir directory;
  std::string target = directory.path("file");
  std::string json = directory.path("result.json");
};

TEST_F(WriteCommandTest, RefusesBadOptionsByNameAndLeavesNothing) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "give --bytes or --duration"},
      {{"--bytes", "8M"}, "--bytes"},
      {{"--duration", "-1"}, "--duration"},
      {{"--duration", "nan"}, "--duration"},
      {{"--duration", "inf"}, "--duration"},
      {{"--bytes", "1MiB", "--threads", "0"}, "--threads"},
      {{"--bytes", "1MiB", "--threads", "65"}, "--threads"},
      {{"--bytes", "1MiB", "--io-depth", "0"}, "--io-depth"},
      {{"--bytes", "1MiB", "--io-depth", "1025"}, "--io-depth"},
      {{"--bytes", "1MiB", "--block-size", "2KiB"}, "--block-size"},
      {{"--bytes", "1MiB", "--block-size", "5000"}, "--block-size"},
      {{"--bytes", "1MiB", "--block-size", "2GiB"}, "--block-size"},
      {{"--bytes", "1MiB", "--span", "1000TB"}, "use a smaller --span"},
      {{"--bytes", "1MiB", "--span", "64KiB", "--block-size", "64KiB", "--threads", "2"},
       "at least one block"},
      {{"--bytes", "64MiB", "--span", "32MiB"}, "--condition overwrite"},
      {{"--bytes", "1GiB", "--threads", "64", "--io-depth", "1024"}, "--threads, --io-depth or --block-size"},
      {{"--bytes", "1MiB", "--pattern", "zigzag"}, "--pattern"},
      {{"--bytes", "1MiB", "--condition", "worn"}, "--condition"},
      {{"--bytes", "1MiB", "--data", "text"}, "--data"},
      {{"--bytes", "1MiB", "--preallocate", "half"}, "--preallocate"},
      {{"--bytes", "1MiB", "--engine", "posix"}, "--engine"},
      {{"--bytes", "1MiB", "--cpus", "9999"}, "--cpus"},
      {{"--bytes", "1MiB", "--interval", "0"}, "--interval"},
      {{"--bytes", "1MiB", "--tag", "phase=x"}, "--tag"},
      {{"--bytes", "1MiB", "--line-protocol", directory.path("no/where")}, "--line-protocol"},
      {{"--bytes", "1MiB", "--sink", "null"}, "leave --target away"},
  };
  for (const auto& [options, part] : cases) {
    std::vector<std::string> arguments = write({"--target", target});
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = run_daqwriter(arguments);
    EXPECT_EQ(result.exit_code, 2) << part << ": " << result.error_text;
    EXPECT_NE(result.error_text.find(part), std::string::npos) << part << ": " << result.error_text;
    EXPECT_FALSE(fs::exists(target));
    EXPECT_FALSE(fs::exists(json));
  }
  EXPECT_NE(run_daqwriter(write({"--bytes", "1MiB"})).error_text.find("--target"), std::string::npos);
}

TEST_F(WriteCommandTest, NeverOverwritesAFile) {
  testing::write_text(target, "somebody's data");
  const auto result = run_daqwriter(write({"--target", target, "--bytes", "8MiB"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.error_text.find("never overwritten"), std::string::npos) << result.error_text;
  EXPECT_EQ(fs::file_size(target), 15u);
}

TEST_F(WriteCommandTest, ASignalEndsItWithItsResultAndWithoutItsFile) {
  for (const std::string engine : {"libaio", "io_uring"}) {
    const std::string lines = directory.path(engine);
    const auto result =
        run_daqwriter(write({"--target", target, "--duration", "40", "--condition", "overwrite", "--span",
                             "16MiB", "--block-size", "64KiB", "--engine", engine, "--line-protocol", lines}),
                      [&](pid_t child) {
                        testing::wait_for_lines(lines, 3);
                        kill(child, SIGINT);
                      });
    EXPECT_EQ(result.exit_code, 130) << result.error_text;
    const auto document = testing::read_json(json);
    EXPECT_EQ(document["status"], "interrupted");
    EXPECT_EQ(document["ended_by"], "signal");
    EXPECT_GT(document["written_bytes"], 0);
    EXPECT_LT(document["time"]["write_s"], 30);
    EXPECT_FALSE(fs::exists(target));
  }
}

}  // namespace
}  // namespace daqwriter
