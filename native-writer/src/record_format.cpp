#include "record_format.h"

#include <libdeflate.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "status.h"

namespace daqwriter {
namespace {

// Readers of version 1 know continuous records only, and may go on reading those.
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kVersionWithMode = 2;
constexpr std::uint64_t kEndianMark = 0x0102030405060708;
constexpr std::array<char, 8> kHeaderMagic = {'D', 'A', 'Q', 'R', 'E', 'C', '0', '1'};
constexpr std::array<char, 8> kTrailerMagic = {'D', 'A', 'Q', 'E', 'N', 'D', '0', '1'};

struct HeaderOnDisk {
  std::array<char, 8> magic;
  std::uint64_t endian_mark;
  std::uint32_t version;
  std::uint32_t crc;  // CRC-32 of the 4096 bytes with this field zero
  RecordId record_id;
  std::uint64_t seed;
  std::int64_t started_utc_ns;
  std::uint32_t links;
  std::uint32_t superchunk_bytes;
  std::uint64_t slots_per_link;
  double rate_hz;
  double duration_s;
  std::uint32_t checksum_kind;
  std::uint32_t alignment;
  std::uint64_t intended_superchunks;
  std::uint32_t mode;
  std::uint32_t reserved;
};
static_assert(sizeof(HeaderOnDisk) == 112);

struct TrailerOnDisk {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t crc;  // CRC-32 of the 4096 bytes with this field zero
  RecordId record_id;
  std::uint64_t superchunks;
  std::uint64_t data_bytes;
  std::uint32_t status;
  std::uint32_t links;
  std::int64_t ended_utc_ns;
  std::array<LinkAccount, kMaxLinks> accounts;
};
static_assert(sizeof(LinkAccount) == 32 && sizeof(TrailerOnDisk) == kBlockAlignment);

template <typename Block>
void seal(Block disk, std::span<std::byte> block) {
  disk.crc = 0;
  std::fill(block.begin(), block.end(), std::byte{0});
  std::memcpy(block.data(), &disk, sizeof disk);
  const std::uint32_t crc = libdeflate_crc32(0, block.data(), kBlockAlignment);
  std::memcpy(block.data() + offsetof(Block, crc), &crc, sizeof crc);
}

template <typename Block>
BlockCheck unseal(std::span<const std::byte> block, const std::array<char, 8>& magic, Block& disk) {
  std::array<std::byte, kBlockAlignment> copy;
  std::memcpy(copy.data(), block.data(), copy.size());
  std::memcpy(&disk, copy.data(), sizeof disk);
  if (disk.magic != magic) return BlockCheck::foreign;
  std::memset(copy.data() + offsetof(Block, crc), 0, sizeof disk.crc);
  return libdeflate_crc32(0, copy.data(), copy.size()) == disk.crc && disk.version >= 1 &&
                 disk.version <= kVersion
             ? BlockCheck::valid
             : BlockCheck::damaged;
}

}  // namespace

std::uint32_t header_crc(const SuperchunkHeader& header) {
  SuperchunkHeader copy = header;
  copy.header_crc = 0;
  return libdeflate_crc32(0, &copy, sizeof copy);
}

RecordId random_record_id() {
  RecordId id{};
  if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    throw Failure("getrandom: " + errno_text(errno));
  }
  return id;
}

RecordId parse_record_id(std::string_view hex) {
  RecordId id{};
  const auto digit = [&](char c) -> unsigned {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    throw Refusal("--record-id '" + std::string(hex) + "': give 32 lower-case hexadecimal digits");
  };
  if (hex.size() != 2 * id.size()) digit('?');
  for (std::size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<std::uint8_t>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  }
  return id;
}

std::string record_id_text(const RecordId& id) {
  std::string text;
  for (const std::uint8_t byte : id) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 0xf];
  }
  return text;
}

void encode_record_header(const RecordHeader& h, std::span<std::byte> block) {
  const bool continuous = h.mode == RecordMode::continuous;
  seal(HeaderOnDisk{kHeaderMagic, kEndianMark, continuous ? kVersion : kVersionWithMode, 0, h.record_id,
                    h.seed, h.started_utc_ns, h.links, h.superchunk_bytes, h.slots_per_link, h.rate_hz,
                    h.duration_s, static_cast<std::uint32_t>(h.checksum), h.alignment, h.intended_superchunks,
                    static_cast<std::uint32_t>(h.mode), 0},
       block);
}

BlockCheck decode_record_header(std::span<const std::byte> block, RecordHeader& h) {
  HeaderOnDisk disk;
  const BlockCheck check = unseal(block, kHeaderMagic, disk);
  if (check != BlockCheck::valid) return check;
  const bool sane = disk.endian_mark == kEndianMark && disk.links >= 1 && disk.links <= kMaxLinks &&
                    disk.superchunk_bytes >= kMinSuperchunkBytes && disk.slots_per_link >= 1 &&
                    disk.alignment >= kBlockAlignment && disk.alignment % kBlockAlignment == 0 &&
                    disk.checksum_kind <= static_cast<std::uint32_t>(ChecksumKind::adler32) &&
                    disk.mode <= static_cast<std::uint32_t>(RecordMode::triggered);
  if (!sane) return BlockCheck::damaged;
  h = {disk.record_id,
       disk.seed,
       disk.started_utc_ns,
       disk.links,
       disk.superchunk_bytes,
       disk.slots_per_link,
       disk.rate_hz,
       disk.duration_s,
       static_cast<ChecksumKind>(disk.checksum_kind),
       disk.alignment,
       disk.intended_superchunks,
       static_cast<RecordMode>(disk.mode)};
  return BlockCheck::valid;
}

void encode_trailer(const RecordTrailer& t, std::span<std::byte> block) {
  TrailerOnDisk disk{kTrailerMagic,
                     kVersion,
                     0,
                     t.record_id,
                     t.superchunks,
                     t.data_bytes,
                     static_cast<std::uint32_t>(t.status),
                     static_cast<std::uint32_t>(t.links.size()),
                     t.ended_utc_ns,
                     {}};
  std::copy(t.links.begin(), t.links.end(), disk.accounts.begin());
  seal(disk, block);
}

BlockCheck decode_trailer(std::span<const std::byte> block, RecordTrailer& t) {
  TrailerOnDisk disk;
  const BlockCheck check = unseal(block, kTrailerMagic, disk);
  if (check != BlockCheck::valid) return check;
  if (disk.links < 1 || disk.links > kMaxLinks || disk.status > 1) return BlockCheck::damaged;
  t = {disk.record_id,    static_cast<TrailerStatus>(disk.status),
       disk.superchunks,  disk.data_bytes,
       disk.ended_utc_ns, {disk.accounts.begin(), disk.accounts.begin() + disk.links}};
  return BlockCheck::valid;
}

}  // namespace daqwriter
