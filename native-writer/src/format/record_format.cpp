#include "format/record_format.h"

#include <libdeflate.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/status.h"

namespace daqwriter {
namespace {

// Readers of version 1 know continuous records only, and may go on reading those.
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kVersionWithMode = 2;
constexpr std::uint32_t kFramedVersion = 3;
constexpr std::uint32_t kUnboundTrailer = 1;  // says nothing about the header that it belongs to
constexpr std::uint32_t kFramedTrailer = 3;   // counts blocks
constexpr std::uint64_t kEndianMark = 0x0102030405060708;
constexpr std::array<char, 8> kHeaderMagic = {'D', 'A', 'Q', 'R', 'E', 'C', '0', '1'};
constexpr std::array<char, 8> kFrameMagic = {'D', 'A', 'Q', 'B', 'L', 'K', '0', '1'};
constexpr std::array<char, 8> kTrailerMagic = {'D', 'A', 'Q', 'E', 'N', 'D', '0', '1'};

// A structure's fields stand in memory as they do on the disk, behind what tells it by itself.
struct HeaderOnDisk {
  std::array<char, 8> magic;
  std::uint64_t endian_mark;
  std::uint32_t version;
  std::uint32_t crc;  // CRC-32 of the 4096 bytes with this field zero
  std::array<std::byte, offsetof(RecordHeader, block_crc)> fields;
};
static_assert(sizeof(HeaderOnDisk) == 136);

struct FrameOnDisk {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t crc;  // as of the header
  BlockFrame frame;
};
static_assert(sizeof(FrameOnDisk) == 56);

struct TrailerOnDisk {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t crc;  // CRC-32 of the 4096 bytes with this field zero
  RecordId record_id;
  std::uint64_t superchunks;
  std::uint64_t extent;  // bytes of superchunks; blocks in a framed record
  std::uint16_t status;
  std::uint16_t links;       // unbound: 0
  std::uint32_t header_crc;  // unbound: the number of links
  std::int64_t ended_utc_ns;
  std::array<LinkAccount, kMaxLinks> accounts;
};
static_assert(sizeof(LinkAccount) == 32 && sizeof(TrailerOnDisk) == kBlockAlignment);

template <typename Block>
std::uint32_t seal(Block disk, std::span<std::byte> block) {
  disk.crc = 0;
  std::fill(block.begin(), block.end(), std::byte{0});
  std::memcpy(block.data(), &disk, sizeof disk);
  const std::uint32_t crc = libdeflate_crc32(0, block.data(), kBlockAlignment);
  std::memcpy(block.data() + offsetof(Block, crc), &crc, sizeof crc);
  return crc;
}

template <typename Block>
BlockCheck unseal(std::span<const std::byte> block, const std::array<char, 8>& magic, Block& disk,
                  std::string& why) {
  std::array<std::byte, kBlockAlignment> copy;
  std::memcpy(copy.data(), block.data(), copy.size());
  std::memcpy(&disk, copy.data(), sizeof disk);
  if (disk.magic != magic) return BlockCheck::foreign;
  std::memset(copy.data() + offsetof(Block, crc), 0, sizeof disk.crc);
  if (libdeflate_crc32(0, copy.data(), copy.size()) == disk.crc) return BlockCheck::valid;
  why = "its own checksum is wrong";
  return BlockCheck::damaged;
}

struct Field {
  const char* name;
  std::uint64_t value;
  std::uint64_t least;
  std::uint64_t most;
};

// The first field that no writer writes so; empty if there is none.
std::string outside(std::initializer_list<Field> fields) {
  for (const Field& field : fields) {
    if (field.value >= field.least && field.value <= field.most) continue;
    return std::string(field.name) + " is " + std::to_string(field.value) + ", not " +
           std::to_string(field.least) + " to " + std::to_string(field.most);
  }
  return {};
}

std::string outside(const char* name, double value) {
  if (std::isfinite(value) && value >= 0) return {};
  return std::string(name) + " is " + std::to_string(value) + ", not a finite number from 0 on";
}

std::string too_much(const char* what, std::uint64_t count, const RecordHeader& h, std::uint64_t links) {
  if (bounded_product({links, count, h.superchunk_bytes})) return {};
  return std::string(what) + " is " + std::to_string(count) + ", of " + std::to_string(h.superchunk_bytes) +
         " B each more than " + std::to_string(kMaxRecordBytes) + " B";
}

// After the alignment and the size of superchunks were found good.
std::string frames_fault(const RecordHeader& h) {
  const std::uint64_t least = round_up(std::uint64_t{h.alignment} + h.superchunk_bytes, h.alignment);
  const std::string fault = outside({{"the size of a block", h.block_bytes, least, kMaxFramedBlockBytes},
                                     {"writers", h.writers, 1, h.links},
                                     {"the number of blocks", h.most_blocks, 0, kMaxCount}});
  if (!fault.empty()) return fault;
  if (h.block_bytes % h.alignment != 0)
    return "the size of a block is " + std::to_string(h.block_bytes) + ", not a multiple of " +
           std::to_string(h.alignment);
  if (bounded_product({h.most_blocks, h.block_bytes})) return {};
  return "the number of blocks is " + std::to_string(h.most_blocks) + ", of " +
         std::to_string(h.block_bytes) + " B each more than " + std::to_string(kMaxRecordBytes) + " B";
}

std::string header_fault(const HeaderOnDisk& disk, const RecordHeader& h) {
  constexpr std::uint64_t kAny = UINT64_MAX;
  const std::initializer_list<Field> fields = {
      {"the byte order mark", disk.endian_mark, kEndianMark, kEndianMark},
      {"the format version", disk.version, kVersion, kFramedVersion},
      {"links", h.links, 1, kMaxLinks},
      {"superchunk_bytes", h.superchunk_bytes, kMinSuperchunkBytes, kMaxSuperchunkBytes},
      {"slots per link", h.slots_per_link, 1, kAny},
      {"the checksum kind", static_cast<std::uint64_t>(h.checksum), 0,
       static_cast<std::uint64_t>(ChecksumKind::adler32)},
      {"the alignment", h.alignment, kBlockAlignment, kMaxAlignment},
      {"the mode", static_cast<std::uint64_t>(h.mode), 0, static_cast<std::uint64_t>(RecordMode::triggered)},
      {"the trailer version", h.trailer_version, disk.version == kFramedVersion ? kFramedTrailer : 0,
       disk.version == kFramedVersion ? kFramedTrailer : kBoundTrailer}};
  if (!std::has_single_bit(h.alignment))
    return "the alignment is " + std::to_string(h.alignment) + ", not a power of two";
  for (const std::string& fault :
       {outside(fields), outside("the rate", h.rate_hz), outside("the duration", h.duration_s),
        too_much("slots per link", h.slots_per_link, h, h.links),
        too_much("intended superchunks", h.intended_superchunks, h, 1)}) {
    if (!fault.empty()) return fault;
  }
  return disk.version == kFramedVersion ? frames_fault(h) : std::string();
}

std::string trailer_fault(const TrailerOnDisk& t, std::uint64_t links) {
  std::string fault = outside({{"the format version", t.version, kUnboundTrailer, kFramedTrailer},
                               {"the status", t.status, 0, 1},
                               {"links", links, 1, kMaxLinks},
                               {"superchunks", t.superchunks, 0, kMaxCount},
                               {"bytes of superchunks, or blocks", t.extent, 0, kMaxRecordBytes}});
  std::uint64_t stored = 0;
  for (std::uint64_t link = 0; link < links && fault.empty(); ++link) {
    const LinkAccount& account = t.accounts[link];
    fault = outside({{"stored of a link", account.stored, 0, t.superchunks},
                     {"lost of a link", account.lost, 0, kMaxCount},
                     {"the first sequence of a link", account.first_sequence, 0, kMaxCount},
                     {"the last sequence of a link", account.last_sequence, 0, kMaxCount}});
    stored += account.stored;
  }
  if (!fault.empty() || stored == t.superchunks) return fault;
  return "its links' stored superchunks add up to " + std::to_string(stored) + ", it says " +
         std::to_string(t.superchunks);
}

}  // namespace

std::uint32_t frame_header_crc(std::span<const std::byte, kFrameHeaderBytes> header) {
  std::array<std::byte, kFrameHeaderBytes> copy;
  std::copy(header.begin(), header.end(), copy.begin());
  std::memset(copy.data() + offsetof(SuperchunkHeader, header_crc), 0, sizeof(std::uint32_t));
  return libdeflate_crc32(0, copy.data(), copy.size());
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

void encode_record_header(RecordHeader& h, std::span<std::byte> block) {
  const bool continuous = h.mode == RecordMode::continuous;
  const std::uint32_t version = h.framed() ? kFramedVersion : continuous ? kVersion : kVersionWithMode;
  if (h.framed()) h.trailer_version = kFramedTrailer;
  HeaderOnDisk disk{kHeaderMagic, kEndianMark, version, 0, {}};
  std::memcpy(disk.fields.data(), &h, disk.fields.size());
  h.block_crc = seal(disk, block);
}

BlockCheck decode_record_header(std::span<const std::byte> block, RecordHeader& h, std::string* why) {
  HeaderOnDisk disk;
  RecordHeader found;
  std::string fault;
  const BlockCheck check = unseal(block, kHeaderMagic, disk, fault);
  std::memcpy(static_cast<void*>(&found), disk.fields.data(), disk.fields.size());
  if (check == BlockCheck::valid) fault = header_fault(disk, found);
  if (why) *why = fault;
  if (check == BlockCheck::foreign) return check;
  if (!fault.empty()) return BlockCheck::damaged;
  h = found;
  h.block_crc = disk.crc;
  // Records of other versions have no such fields.
  if (disk.version != kFramedVersion) h.block_bytes = h.writers = 0;
  if (disk.version != kFramedVersion) h.most_blocks = 0;
  return BlockCheck::valid;
}

void encode_trailer(const RecordTrailer& t, std::span<std::byte> block) {
  const bool bound = t.header_crc.has_value();
  const auto links = static_cast<std::uint32_t>(t.links.size());
  TrailerOnDisk disk{kTrailerMagic,
                     t.blocks ? kFramedTrailer
                     : bound  ? kBoundTrailer
                              : kUnboundTrailer,
                     0,
                     t.record_id,
                     t.superchunks,
                     t.blocks.value_or(t.data_bytes),
                     static_cast<std::uint16_t>(t.status),
                     static_cast<std::uint16_t>(bound ? links : 0),
                     t.header_crc.value_or(links),
                     t.ended_utc_ns,
                     {}};
  std::copy(t.links.begin(), t.links.end(), disk.accounts.begin());
  seal(disk, block);
}

BlockCheck decode_trailer(std::span<const std::byte> block, RecordTrailer& t, std::string* why) {
  TrailerOnDisk disk;
  std::string fault;
  const BlockCheck check = unseal(block, kTrailerMagic, disk, fault);
  const bool bound = disk.version != kUnboundTrailer;
  const std::uint64_t links = bound ? disk.links : disk.header_crc;
  if (check == BlockCheck::valid) fault = trailer_fault(disk, links);
  if (why) *why = fault;
  if (check == BlockCheck::foreign) return check;
  if (!fault.empty()) return BlockCheck::damaged;
  t = {disk.record_id,
       static_cast<TrailerStatus>(disk.status),
       disk.superchunks,
       disk.version == kFramedTrailer ? 0 : disk.extent,
       disk.ended_utc_ns,
       {disk.accounts.begin(), disk.accounts.begin() + static_cast<std::ptrdiff_t>(links)},
       bound ? std::optional(disk.header_crc) : std::nullopt,
       disk.version == kFramedTrailer ? std::optional(disk.extent) : std::nullopt};
  return BlockCheck::valid;
}

void encode_frame(const BlockFrame& f, std::span<std::byte> block) {
  seal(FrameOnDisk{kFrameMagic, kFramedVersion, 0, f}, block);
}

BlockCheck decode_frame(std::span<const std::byte> block, BlockFrame& f, std::string* why) {
  FrameOnDisk disk;
  std::string fault;
  const BlockCheck check = unseal(block, kFrameMagic, disk, fault);
  if (check == BlockCheck::valid)
    fault = outside({{"the format version", disk.version, kFramedVersion, kFramedVersion}});
  if (why) *why = fault;
  if (check == BlockCheck::foreign) return check;
  if (!fault.empty()) return BlockCheck::damaged;
  f = disk.frame;
  return BlockCheck::valid;
}

std::optional<std::string> frame_mismatch(const RecordHeader& record, const BlockFrame& frame,
                                          std::uint64_t number) {
  if (frame.record_id != record.record_id) return "it is of record " + record_id_text(frame.record_id);
  if (frame.header_crc != record.block_crc)
    return "it belongs to another header: an earlier record with the same id left it";
  if (frame.number != number) return "it is of block " + std::to_string(frame.number);
  if (frame.writer >= record.writers)
    return "its writer is " + std::to_string(frame.writer) + " of " + std::to_string(record.writers);
  if (frame.superchunks == 0 || frame.superchunks > record.superchunks_per_block())
    return "it counts " + std::to_string(frame.superchunks) + " superchunks, a block has room for " +
           std::to_string(record.superchunks_per_block());
  return std::nullopt;
}

std::optional<std::string> trailer_mismatch(const RecordHeader& record, const RecordTrailer& trailer,
                                            std::uint64_t offset) {
  const auto bytes = bounded_product({trailer.superchunks, record.superchunk_bytes});
  if (trailer.record_id != record.record_id) return "it is of record " + record_id_text(trailer.record_id);
  if (record.binds_trailer() && trailer.header_crc != record.block_crc)
    return "it belongs to another header: an earlier record with the same id left it";
  if (!record.binds_trailer() && trailer.header_crc)
    return "the record is of a format with an unbound trailer";
  if (trailer.links.size() != record.links)
    return "links is " + std::to_string(trailer.links.size()) + ", in the header " +
           std::to_string(record.links);
  if (trailer.superchunks > record.intended_superchunks)
    return "superchunks is " + std::to_string(trailer.superchunks) + ", the header allows " +
           std::to_string(record.intended_superchunks);
  if (trailer.blocks.has_value() != record.framed())
    return std::string(record.framed() ? "it counts no blocks, and the record is framed"
                                       : "it counts blocks, and the record is gapless");
  if (record.framed()) {
    if (*trailer.blocks > record.most_blocks || record.block_offset(*trailer.blocks) != offset)
      return "it counts " + std::to_string(*trailer.blocks) + " blocks, which end elsewhere";
    if (!bytes || trailer.superchunks > *trailer.blocks * record.superchunks_per_block())
      return "it counts " + std::to_string(trailer.superchunks) + " superchunks, for which " +
             std::to_string(*trailer.blocks) + " blocks have no room";
    return std::nullopt;
  }
  if (bytes != trailer.data_bytes)
    return "bytes of superchunks is " + std::to_string(trailer.data_bytes) + ", not " +
           std::to_string(trailer.superchunks) + " x " + std::to_string(record.superchunk_bytes);
  if (record.alignment + round_up(*bytes, record.alignment) != offset)
    return "it counts " + std::to_string(trailer.superchunks) + " superchunks, which end elsewhere";
  return std::nullopt;
}

}  // namespace daqwriter
