// Promise: what stands on a drive and on its partitions, and whether this system's own configuration names
// it.
#include <blkid/blkid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/status.h"
#include "target/device_facts.h"

namespace daqwriter {
namespace {

// libblkid says "raid" of most signatures of sets (md, LVM, DDF, Intel's, VMFS and further firmware's). These
// are sets as well; Ansible's storage guard knows them all by name, and a test compares the two.
constexpr std::array<std::string_view, 4> kSetsOfOtherUsage = {"zfs_member", "bcache", "ceph_bluestore",
                                                               "bcachefs"};

using Probe = std::unique_ptr<blkid_struct_probe, decltype(&blkid_free_probe)>;

Probe probe_of(int fd, const std::string& path, const Partition& part) {
  Probe probe(blkid_new_probe(), &blkid_free_probe);
  if (!probe || blkid_probe_set_device(probe.get(), fd, static_cast<blkid_loff_t>(part.start_bytes),
                                       static_cast<blkid_loff_t>(part.bytes)) != 0)
    throw Refusal(path + ": cannot be examined for signatures");
  return probe;
}

std::string value_of(const Probe& probe, const char* key) {
  const char* text = nullptr;
  return blkid_probe_lookup_value(probe.get(), key, &text, nullptr) == 0 ? std::string(text) : std::string();
}

// Reads at an offset what may be missing: the drive is shorter.
bool stands_at(int fd, std::uint64_t offset, std::string_view wanted) {
  std::string found(wanted.size(), '\0');
  const ssize_t got = pread(fd, found.data(), found.size(), static_cast<off_t>(offset));
  return got == static_cast<ssize_t>(found.size()) && found == wanted;
}

// Either header of a GPT by itself, with the sector sizes that there are: libblkid wants its protective MBR
// too.
std::optional<std::string> gpt_header(int fd) {
  constexpr std::string_view kHeader = "EFI PART";
  const auto end = static_cast<std::uint64_t>(std::max<off_t>(lseek(fd, 0, SEEK_END), 0));
  for (const std::uint64_t sector : {512u, 4096u}) {
    if (stands_at(fd, sector, kHeader) || (end > sector && stands_at(fd, end - sector, kHeader)))
      return "header of a gpt partition table";
  }
  return std::nullopt;
}

// Looks within the part, or to the end of the drive where the part has 0 bytes.
std::optional<std::string> probe_range(int fd, const std::string& path, const Partition& part) {
  const Probe probe = probe_of(fd, path, part);
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE);
  blkid_probe_enable_partitions(probe.get(), 1);
  const int found = blkid_do_safeprobe(probe.get());
  if (found == 1) return std::nullopt;
  if (found == -2) return "several contradicting signatures";
  if (found < 0) throw Refusal(path + ": the examination for signatures failed");
  const std::string type = value_of(probe, "TYPE");
  return type.empty() ? value_of(probe, "PTTYPE") + " partition table"
                      : type + " " + value_of(probe, "USAGE");
}

bool is_set(const std::string& type, const std::string& usage) {
  return usage == "raid" ||
         std::find(kSetsOfOtherUsage.begin(), kSetsOfOtherUsage.end(), type) != kSetsOfOtherUsage.end();
}

// Every signature and not only the first: what hides behind another one is still somebody's.
void add_signatures(int fd, const std::string& path, const Partition& part, DeviceFacts& facts,
                    std::set<std::string>& names) {
  const Probe probe = probe_of(fd, path, part);
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(
      probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE | BLKID_SUBLKS_UUID | BLKID_SUBLKS_LABEL);
  int found = 0;
  while ((found = blkid_do_probe(probe.get())) == 0) {
    const std::string type = value_of(probe, "TYPE");
    if (is_set(type, value_of(probe, "USAGE"))) facts.sets.push_back(part.name + " (" + type + ")");
    names.insert("UUID=" + value_of(probe, "UUID"));
    names.insert("LABEL=" + value_of(probe, "LABEL"));
  }
  if (found < 0) throw Refusal(path + ": the examination for signatures failed");
}

void add_names_of_partitions(int fd, const std::string& path, std::set<std::string>& names) {
  const Probe probe = probe_of(fd, path, {});
  blkid_probe_enable_partitions(probe.get(), 1);
  const blkid_partlist table = blkid_probe_get_partitions(probe.get());
  for (int i = 0; table && i < blkid_partlist_numof_partitions(table); ++i) {
    const blkid_partition one = blkid_partlist_get_partition(table, i);
    if (const char* uuid = blkid_partition_get_uuid(one)) names.insert(std::string("PARTUUID=") + uuid);
    if (const char* label = blkid_partition_get_name(one)) names.insert(std::string("PARTLABEL=") + label);
  }
}

struct Mention {
  std::string device;  // "UUID=...", or a path
  std::string where;
};

std::vector<Mention> mentions_of_devices(const SystemPaths& paths) {
  std::vector<Mention> found;
  std::ifstream table(paths.etc + "/fstab");
  for (std::string line, device; std::getline(table, line);) {
    if (std::istringstream(line) >> device && !device.starts_with('#'))
      found.push_back({device, paths.etc + "/fstab"});
  }
  std::ifstream words(paths.proc + "/cmdline");
  for (std::string word; words >> word;) {
    for (const std::string_view key : {"root=", "resume="}) {
      if (word.starts_with(key)) found.push_back({word.substr(key.size()), "the kernel's command line"});
    }
  }
  for (Mention& each : found) std::erase(each.device, '"');
  return found;
}

// A link that udev makes of a name, as that name: it is missing where no udev runs.
std::string without_link(const std::string& device) {
  constexpr std::string_view kLinks = "/dev/disk/by-";
  const std::size_t slash = device.find('/', kLinks.size());
  if (!device.starts_with(kLinks) || slash == std::string::npos) return device;
  std::string key = device.substr(kLinks.size(), slash - kLinks.size());
  std::transform(key.begin(), key.end(), key.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return key + "=" + device.substr(slash + 1);
}

bool means(const std::string& device, const DeviceFacts& facts, const std::set<std::string>& names) {
  if (names.contains(without_link(device))) return true;
  struct stat status {};
  return device.starts_with('/') && stat(device.c_str(), &status) == 0 && S_ISBLK(status.st_mode) &&
         facts.numbers.contains(number_of(status.st_rdev).text());
}

// Detector data on raw blocks has no signature. A drive that was purged, or never written to, reads as zeros:
// pieces from its first to its last byte, evenly spaced, tell it from one that holds data.
constexpr std::uint64_t kPieceBytes = 64 * 1024;
constexpr std::uint64_t kPieces = 128;

// Bytes from the drive's begin to the first one found that is not zero.
std::optional<std::uint64_t> first_data(int fd, const std::string& path) {
  const off_t end = lseek(fd, 0, SEEK_END);
  if (end < 0) throw Refusal(path + ": cannot be examined for data: " + errno_text(errno));
  const auto bytes = static_cast<std::uint64_t>(end);
  const std::uint64_t last = bytes > kPieceBytes ? bytes - kPieceBytes : 0;
  std::vector<char> piece(kPieceBytes);
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    const std::uint64_t at = last / (kPieces - 1) * i + last % (kPieces - 1) * i / (kPieces - 1);
    ssize_t got = -1;
    do {
      got = pread(fd, piece.data(), piece.size(), static_cast<off_t>(at));
    } while (got < 0 && errno == EINTR);
    if (got < 0)
      throw Refusal(path + ": cannot be examined for data at offset " + std::to_string(at) + ": " +
                    errno_text(errno));
    const auto read = piece.begin() + got;
    const auto found = std::find_if(piece.begin(), read, [](char byte) { return byte != 0; });
    if (found != read) return at + static_cast<std::uint64_t>(found - piece.begin());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> probe_signature(int fd, const std::string& path,
                                           const std::vector<Partition>& partitions) {
  if (const auto found = probe_range(fd, path, {})) return found;
  if (const auto found = gpt_header(fd)) return found;
  if (partitions.empty()) return std::nullopt;
  std::string text;
  for (const Partition& each : partitions) {
    const auto inside = probe_range(fd, path, each);
    text += (text.empty() ? "" : ", ") + each.name + (inside ? " with " + *inside : "");
  }
  return "partitions that the kernel knows: " + text;
}

void read_contents(int fd, const std::string& path, const SystemPaths& paths, DeviceFacts& facts) {
  facts.signature = probe_signature(fd, path, facts.partitions);
  facts.data_at = facts.signature ? std::nullopt : first_data(fd, path);
  facts.sets.clear();
  facts.named.clear();
  std::set<std::string> names;
  add_signatures(fd, path, {facts.name, 0, 0}, facts, names);
  for (const Partition& each : facts.partitions) {
    // To libblkid no bytes mean all up to the drive's end.
    if (each.bytes > 0) add_signatures(fd, path, each, facts, names);
  }
  add_names_of_partitions(fd, path, names);
  for (const Mention& each : mentions_of_devices(paths)) {
    if (means(each.device, facts, names)) facts.named.push_back(each.device + " in " + each.where);
  }
}

}  // namespace daqwriter
