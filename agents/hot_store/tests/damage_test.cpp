// Damage of the store's file, page by page, judged by what `hotstore verify` does as a process: it never says
// intact where data are wrong, never dies of a signal, and always says why.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "load.h"
#include "store_options.h"
#include "support.h"

namespace hotstore {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

constexpr std::size_t kPage = 4096;

struct Said {
  int status = 0;  // as of waitpid
  std::string text;
};

Said said_by(const std::string& arguments) {
  const std::string command =
      std::string("exec timeout -k 1 60 ") + HOTSTORE_PROGRAM + " " + arguments + " 2>&1";
  FILE* const stream = popen(command.c_str(), "r");
  Said said;
  for (int byte = fgetc(stream); byte != EOF; byte = fgetc(stream)) said.text += static_cast<char>(byte);
  said.status = pclose(stream);
  return said;
}

// A store of some pages, and everything that was put there.
class DamagedStore : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  DamagedStore() {
    const Said made = said_by("bench " + common + " --consumers 0 --warm-up 0 --seconds 20 --events " +
                              std::to_string(events) + " " + log);
    EXPECT_EQ(made.status, 0) << made.text;
    std::ifstream stream(file, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(stream), {});
    // There is nothing to damage behind the last used page.
    used = (whole.find_last_not_of('\0') / kPage + 1) * kPage;
  }

  void write(const Bytes& bytes) const { std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes; }
  // In another way than the command's own.
  bool data_are_right() const {
    StoreOptions options;
    options.directory = directory.path("store").string();
    options.capacity = 4 << 20;
    HotStore store = open_store(options, Access::read);
    const ValuePool pool(value_bytes);
    for (std::uint64_t event = 0; event < static_cast<std::uint64_t>(events); ++event) {
      Bytes value;
      if (store.get({event, 0, 1}, value) != Answer::ok || value != pool.of(event, 0)) return false;
    }
    return true;
  }
  // Returns whether it was found.
  bool expect_judged(const Bytes& bytes, const std::string& what) const {
    write(bytes);
    const Said said = said_by("verify " + common + " " + log);
    EXPECT_TRUE(WIFEXITED(said.status) && WEXITSTATUS(said.status) < 124) << what << ": " << said.text;
    const bool found = said.status != 0;
    EXPECT_TRUE(found || data_are_right()) << what;
    EXPECT_TRUE(!found || said.text.find("hotstore: ") != std::string::npos) << what << ": " << said.text;
    return found;
  }
  // Applies `change` to each page in turn; returns the number that was found.
  std::size_t judge_each_page(const std::string& name,
                              const std::function<void(Bytes& bytes, std::size_t at)>& change) const {
    std::size_t found = 0;
    for (std::size_t at = 0; at < used; at += kPage) {
      Bytes bytes = whole;
      change(bytes, at);
      if (bytes != whole) found += expect_judged(bytes, name + " page " + std::to_string(at / kPage));
    }
    return found;
  }

  TempDir directory;
  std::uint64_t value_bytes = static_cast<std::uint64_t>(GetParam().first);
  int events = GetParam().second;
  fs::path file = directory.path("store") / "data.mdb";
  std::string log = "--ack-log " + directory.path("acks").string();
  std::string common = "--dir " + directory.path("store").string() + " --capacity 4MiB --value-size " +
                       std::to_string(GetParam().first);
  Bytes whole;
  std::size_t used = 0;
};

TEST_P(DamagedStore, WithAPageOfZerosIsNotIntact) {
  EXPECT_GT(judge_each_page("zeros in",
                            [](Bytes& bytes, std::size_t at) { bytes.replace(at, kPage, kPage, '\0'); }),
            static_cast<std::size_t>(events) / 8);
}

TEST_P(DamagedStore, WithABitFlippedInAPagesHeadIsNotReadAsIfItWereNot) {
  for (const std::size_t byte : {10u, 12u, 14u, 40u})
    judge_each_page("a bit at " + std::to_string(byte) + " of", [&](Bytes& bytes, std::size_t at) {
      bytes[at + byte] = static_cast<char>(bytes[at + byte] ^ (1 << (byte % 8)));
    });
}

TEST_P(DamagedStore, WithABitFlippedInAPagesBodyIsNotReadAsIfItWereNot) {
  for (const std::size_t byte : {100u, 3'900u})
    judge_each_page("a bit at " + std::to_string(byte) + " of", [&](Bytes& bytes, std::size_t at) {
      bytes[at + byte] = static_cast<char>(bytes[at + byte] ^ 16);
    });
}

TEST_P(DamagedStore, WithTwoPagesSwappedIsNotIntact) {
  const auto swap_with = [&](std::size_t distance) {
    return judge_each_page("swap by " + std::to_string(distance) + " of", [&](Bytes& bytes, std::size_t at) {
      const std::size_t other = at + distance * kPage;
      if (other >= used || at < 2 * kPage) return;
      std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                       bytes.begin() + static_cast<std::ptrdiff_t>(at + kPage),
                       bytes.begin() + static_cast<std::ptrdiff_t>(other));
    });
  };
  EXPECT_GT(swap_with(1) + swap_with(2), static_cast<std::size_t>(events) / 8);
}

TEST_P(DamagedStore, ThatIsCutIsNotIntact) {
  for (std::size_t at = 0; at < used; at += kPage)
    for (const std::size_t bytes : {at, at + 100})
      expect_judged(whole.substr(0, bytes), "cut to " + std::to_string(bytes) + " bytes");
  EXPECT_TRUE(expect_judged(whole.substr(0, used / 2), "cut to its half"));
}

INSTANTIATE_TEST_SUITE_P(ValuesInPagesAndOnPagesOfTheirOwn, DamagedStore,
                         ::testing::Values(std::pair{300, 45}, std::pair{6'000, 12}));

// The process that uses the store is killed: the command says so, and leaves JSON.
TEST(DeadChild, SemanticsFailsWithJson) {
  const TempDir directory;
  const std::string json = directory.path("result.json").string();
  const std::string program = std::string(HOTSTORE_PROGRAM) + " semantics --dir " +
                              directory.path("store").string() + " --capacity 16MiB --lease 30 --json " +
                              json;
  const std::string script =
      program +
      " & parent=$!; for i in $(seq 200); do child=$(pgrep -P $parent) && break; sleep "
      "0.02; done; sleep 0.5; kill -9 $child; wait $parent";
  EXPECT_EQ(WEXITSTATUS(system(("exec 2>/dev/null; " + script).c_str())), 1);
  std::ifstream stream(json);
  ASSERT_TRUE(stream.good());
  const auto document = nlohmann::json::parse(stream);
  EXPECT_EQ(document["status"], "failed");
  EXPECT_NE(document["error"].get<std::string>().find("SIGKILL"), std::string::npos) << document["error"];
  EXPECT_TRUE(document["rows"].empty());
}

TEST(DeadChild, SemanticsOnAFileThatMayNotGrowFailsWithJson) {
  const TempDir directory;
  const std::string json = directory.path("result.json").string();
  const std::string script = std::string("exec 2>/dev/null; ulimit -f 64; ") + HOTSTORE_PROGRAM +
                             " semantics --dir " + directory.path("store").string() +
                             " --capacity 16MiB --json " + json;
  EXPECT_EQ(WEXITSTATUS(system(script.c_str())), 1);
  std::ifstream stream(json);
  ASSERT_TRUE(stream.good());
  const auto document = nlohmann::json::parse(stream);
  EXPECT_EQ(document["status"], "failed");
  EXPECT_TRUE(document["error"].is_string());
}

}  // namespace
}  // namespace hotstore
