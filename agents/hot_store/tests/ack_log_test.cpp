// The logs of acknowledgements show every change.
#include "ack_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/status.h"
#include "support.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;
using testing::TempDir;
constexpr std::size_t kHeaderBytes = 28, kRecordBytes = 13;

class AckLogFile : public ::testing::Test {
 protected:
  AckLogFile() {
    std::filesystem::create_directory(directory.path("acks"));
    AckLog log(directory.path("acks").string(), "put-0");
    for (std::uint64_t event = 0; event < 4; ++event) log.write(Ack::put, event);
  }
  std::string content() const {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void replace(const std::string& bytes) const {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  Acks read() const { return read_acks(directory.path("acks").string()); }

  TempDir directory;
  std::filesystem::path file = directory.path("acks") / "put-0.acks";
};

TEST_F(AckLogFile, GivesBackWhatWasWritten) {
  EXPECT_EQ(read().events.size(), 4u);
  EXPECT_EQ(read().torn, 0u);
}

TEST_F(AckLogFile, WithAnyByteChangedIsRefused) {
  const std::string whole = content();
  ASSERT_EQ(whole.size(), kHeaderBytes + 4 * kRecordBytes);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    replace(changed);
    EXPECT_THROW(read(), Refusal) << "byte " << at;
  }
}

TEST_F(AckLogFile, WithARecordGoneOrRepeatedInTheMiddleIsRefused) {
  const std::string whole = content();
  std::string changed = whole;
  replace(changed.erase(kHeaderBytes + kRecordBytes, kRecordBytes));
  EXPECT_THROW(read(), Refusal);
  changed = whole;
  replace(changed.insert(kHeaderBytes, whole.substr(kHeaderBytes, kRecordBytes)));
  EXPECT_THROW(read(), Refusal);
}

TEST_F(AckLogFile, ThatAKilledProcessTornIsReadUpToThereAndCounted) {
  const std::string whole = content();
  replace(whole.substr(0, whole.size() - 5));
  EXPECT_EQ(read().events.size(), 3u);
  EXPECT_EQ(read().torn, 1u);
}

TEST_F(AckLogFile, ThatHoldsNothingIsNothingToVerify) {
  replace(content().substr(0, kHeaderBytes));
  EXPECT_THROW(read(), Refusal);
  std::filesystem::remove(file);
  EXPECT_THROW(read(), Refusal);
}

}  // namespace
}  // namespace hotstore
