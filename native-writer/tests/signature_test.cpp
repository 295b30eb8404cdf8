// Signatures of what the tools of this machine cannot make, written by hand on a loop device: each is found,
// and the drive refused for it.
#include <libdeflate.h>

#include <cstring>

#include "base/status.h"
#include "support.h"
#include "target/target.h"

namespace daqwriter {
namespace {

using testing::LoopDevice;
using testing::TempDir;

// A block on the drive, filled by hand: little-endian numbers of 1 to 8 bytes.
struct Written {
  explicit Written(std::size_t size) : bytes(size) {}
  Written& put(std::size_t at, std::uint64_t value, std::size_t size) {
    std::memcpy(bytes.data() + at, &value, size);
    return *this;
  }
  std::vector<std::byte> bytes;
};

class SignatureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_LOOP_DEVICES();
    loop = std::make_unique<LoopDevice>(directory.path("backing"), kBytes);
  }
  std::vector<std::string> sets(const std::vector<Partition>& partitions = {}) const {
    DeviceFacts facts;
    facts.name = "drive";
    facts.partitions = partitions;
    read_contents(loop->fd(), loop->path(), {}, facts);
    return facts.sets;
  }
  void expect_found(const std::string& signature) const {
    EXPECT_EQ(probe_signature(loop->fd(), loop->path()), signature);
    const SystemPaths paths{"/sys", "/proc", directory.path("udev")};
    testing::write_text(paths.udev + "/b" + loop->number().text(), "E:ID_SERIAL_SHORT=L1\n");
    EXPECT_THROW(plan_target(loop->path(), {"L1", "", false}, paths), Refusal);
    const auto with_consent = [&] { plan_target(loop->path(), {"L1", "L1", false}, paths); };
    if (sets().empty())
      EXPECT_NO_THROW(with_consent());
    else
      EXPECT_THROW(with_consent(), Refusal);  // other drives belong to it
  }

  static constexpr std::uint64_t kBytes = 64 << 20;
  TempDir directory;
  std::unique_ptr<LoopDevice> loop;
};

TEST_F(SignatureTest, AnEmptyDriveHasNone) {
  EXPECT_EQ(probe_signature(loop->fd(), loop->path()), std::nullopt);
}

TEST_F(SignatureTest, IsRefusedForAGuidPartitionTable) {
  Written mbr(512);
  mbr.put(450, 0xee, 1).put(454, 1, 4).put(458, kBytes / 512 - 1, 4).put(510, 0xaa55, 2);
  Written header(512);
  const std::vector<std::byte> entries(128 * 128);
  const std::uint64_t last = kBytes / 512 - 1;
  header.put(0, 0x5452415020494645, 8).put(8, 0x10000, 4).put(12, 92, 4).put(24, 1, 8).put(32, last, 8);
  header.put(40, 34, 8)
      .put(48, last - 33, 8)
      .put(56, 0x1234, 8)
      .put(72, 2, 8)
      .put(80, 128, 4)
      .put(84, 128, 4);
  header.put(88, libdeflate_crc32(0, entries.data(), entries.size()), 4);
  header.put(16, libdeflate_crc32(0, header.bytes.data(), 92), 4);
  testing::write_bytes(loop->path(), 0, mbr.bytes);
  testing::write_bytes(loop->path(), 512, header.bytes);
  expect_found("gpt partition table");
}

// A table that is damaged, or that a tool wiped by half, may still be brought back.
TEST_F(SignatureTest, IsRefusedForWhatIsLeftOfAGuidPartitionTable) {
  Written mbr(512);
  mbr.put(450, 0xee, 1).put(454, 1, 4).put(458, kBytes / 512 - 1, 4).put(510, 0xaa55, 2);
  testing::write_bytes(loop->path(), 0, mbr.bytes);
  expect_found("PMBR partition table");
  testing::write_bytes(loop->path(), 0, std::vector<std::byte>(512));
  const Written header = Written(512).put(0, 0x5452415020494645, 8);
  for (const std::uint64_t offset : {std::uint64_t{512}, std::uint64_t{4096}, kBytes - 512, kBytes - 4096}) {
    testing::write_bytes(loop->path(), offset, header.bytes);
    expect_found("header of a gpt partition table");
    testing::write_bytes(loop->path(), offset, std::vector<std::byte>(512));
  }
  EXPECT_EQ(probe_signature(loop->fd(), loop->path()), std::nullopt);
}

Written md_superblock() {
  Written superblock(4096);
  superblock.put(0, 0xa92b4efc, 4).put(4, 1, 4).put(72, 1, 4).put(144, 8, 8);  // version 1.2 lies at sector 8
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < 256; at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, superblock.bytes.data() + at, sizeof word);
    sum += word;
  }
  superblock.put(216, (sum & 0xffffffff) + (sum >> 32), 4);
  return superblock;
}

TEST_F(SignatureTest, IsRefusedForAMemberOfARaid) {
  testing::write_bytes(loop->path(), 4096, md_superblock().bytes);
  expect_found("linux_raid_member raid");
  EXPECT_EQ(sets(), std::vector<std::string>{"drive (linux_raid_member)"});
}

TEST_F(SignatureTest, ASetIsSeenBehindAFileSystemAndInAPartition) {
  EXPECT_TRUE(sets().empty());
  testing::run_tool("mkfs.ext4 -q -F " + loop->path());
  EXPECT_TRUE(sets().empty());
  testing::write_bytes(loop->path(), 4096, md_superblock().bytes);
  EXPECT_EQ(sets(), std::vector<std::string>{"drive (linux_raid_member)"});
  testing::write_bytes(loop->path(), 4096, std::vector<std::byte>(4096));
  testing::write_bytes(loop->path(), (1 << 20) + 4096, md_superblock().bytes);
  EXPECT_TRUE(sets().empty());
  EXPECT_EQ(sets({{"p1", 1 << 20, 2 << 20}}), std::vector<std::string>{"p1 (linux_raid_member)"});
}

TEST_F(SignatureTest, IsRefusedForAVolumeOfLvm) {
  Written label(512);
  label.put(0, 0x454e4f4c4542414c, 8).put(8, 1, 8).put(20, 32, 4).put(24, 0x31303020324d564c, 8);  // LABELONE
  std::uint32_t crc = 0xf597a6cf;
  for (std::size_t at = 20; at < 512; ++at) {
    crc ^= std::to_integer<std::uint32_t>(label.bytes[at]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  label.put(16, crc, 4);
  testing::write_bytes(loop->path(), 512, label.bytes);
  expect_found("LVM2_member raid");
  EXPECT_EQ(sets(), std::vector<std::string>{"drive (LVM2_member)"});
}

}  // namespace
}  // namespace daqwriter
