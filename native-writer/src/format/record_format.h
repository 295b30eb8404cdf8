// Promise: the bytes on the disk, as FORMAT.md documents them. Little-endian, fixed offsets, every structure
// carries a checksum of itself.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checksum/checksum.h"

namespace daqwriter {

static_assert(std::endian::native == std::endian::little,
              "the record format is written as the CPU's own layout");

constexpr std::size_t kBlockAlignment = 4096;  // 512 B is not accepted by every drive
constexpr std::uint32_t kMaxLinks = 126;       // what one trailer block can account for
using RecordId = std::array<std::uint8_t, 16>;

RecordId random_record_id();
RecordId parse_record_id(std::string_view hex);  // 32 hex digits, throws Refusal
std::string record_id_text(const RecordId& id);

// The two kinds of frames that data comes in, superchunks and events, begin with 64 bytes of one shape:
// magic, checksum of the header, id of the record or run, and what that kind has besides.
constexpr std::size_t kFrameHeaderBytes = 64;

// CRC-32 of the 64 bytes with the field header_crc zero.
std::uint32_t frame_header_crc(std::span<const std::byte, kFrameHeaderBytes> header);

template <typename Header>
std::uint32_t header_crc(const Header& header) {
  static_assert(offsetof(Header, magic) == 0 && offsetof(Header, header_crc) == 4);
  return frame_header_crc(std::as_bytes(std::span<const Header, 1>(&header, 1)));
}

// By magic and its own checksum.
template <typename Header>
bool valid_header(const Header& header) {
  return header.magic == Header::kMagic && header_crc(header) == header.header_crc;
}

// The header that `bytes` begins with, valid or not; zeros where there are fewer.
template <typename Header>
Header header_at(std::span<const std::byte> bytes) {
  Header header{};
  std::memcpy(&header, bytes.data(), std::min(sizeof header, bytes.size()));
  return header;
}

// Starts each superchunk and is part of its size, as a detector frame's header is.
struct SuperchunkHeader {
  static constexpr std::uint32_t kMagic = 0x43534e44;  // "DNSC"
  std::uint32_t magic;
  std::uint32_t header_crc;
  RecordId record_id;
  std::uint64_t sequence;  // counts what the link emitted; skips what was lost
  std::uint64_t ordinal;   // counts what the link's ring accepted; never skips. Payload slot: see RecordMode
  std::int64_t intended_ns;  // intended arrival after the record's start
  std::uint32_t link;
  std::uint32_t payload_bytes;
  std::uint32_t payload_checksum;
  std::uint32_t checksum_kind;
};
static_assert(sizeof(SuperchunkHeader) == kFrameHeaderBytes);
constexpr std::uint32_t kSuperchunkMagic = SuperchunkHeader::kMagic;
constexpr std::uint32_t kMinSuperchunkBytes = sizeof(SuperchunkHeader) + 1;
constexpr std::uint32_t kMaxSuperchunkBytes = 64u << 20;
// A reader accepts no larger numbers, so that no sum or product of them wraps.
constexpr std::uint64_t kMaxRecordBytes = 1ull << 62;
constexpr std::uint64_t kMaxCount = 1ull << 56;  // sequence, ordinal or serial
constexpr std::uint32_t kMaxAlignment = 1u << 20;
constexpr std::uint32_t kMaxFramedBlockBytes = 1u << 30;

// continuous: all that the links emitted; a gap in the sequence was lost. triggered: what was asked for; a
// gap was lost or not asked for, and the payload's slot is sequence % slots.
enum class RecordMode : std::uint32_t { continuous = 0, triggered = 1 };

constexpr std::uint32_t kBoundTrailer = 2;  // names the header that it belongs to

// First block of the record. All up to block_crc stands so on the disk.
struct RecordHeader {
  RecordId record_id{};
  std::uint64_t seed = 0;
  std::int64_t started_utc_ns = 0;
  std::uint32_t links = 0;
  std::uint32_t superchunk_bytes = 0;
  std::uint64_t slots_per_link = 0;
  double rate_hz = 0;  // superchunks per second and link, after scale
  double duration_s = 0;
  ChecksumKind checksum = ChecksumKind::off;
  std::uint32_t alignment = kBlockAlignment;  // unit of every transfer; size of header and trailer block
  std::uint64_t intended_superchunks = 0;     // most that the record can hold
  RecordMode mode = RecordMode::continuous;
  std::uint32_t trailer_version = kBoundTrailer;  // of a record that is closed; 0: of an older format
  // Only a framed record has these; 0: gapless, of format 1 or 2.
  std::uint32_t block_bytes = 0;  // from the beginning of one frame to that of the next
  std::uint32_t writers = 0;      // each made blocks of its own, of the links that were its own
  std::uint64_t most_blocks = 0;  // that the record can have
  std::uint64_t run_key = 0;      // of the payload, another one in each run; 0: of an older record

  std::uint32_t block_crc = 0;  // the block's own checksum, set by what reads or writes the block

  bool binds_trailer() const { return trailer_version >= kBoundTrailer; }
  bool framed() const { return block_bytes > 0; }
  std::uint64_t superchunks_per_block() const { return (block_bytes - alignment) / superchunk_bytes; }
  std::uint64_t block_offset(std::uint64_t number) const { return alignment + number * block_bytes; }
};

// Begins each block of a framed record, and says what the block is without any other one. Stands so on the
// disk.
struct BlockFrame {
  RecordId record_id{};
  std::uint64_t number = 0;       // of the block: says where it stands
  std::uint32_t header_crc = 0;   // RecordHeader::block_crc
  std::uint32_t superchunks = 0;  // behind the frame, one behind the other, each whole
  std::uint32_t writer = 0;       // of the record's writers
  std::uint32_t unused = 0;
};

struct LinkAccount {
  std::uint64_t stored = 0;
  std::uint64_t lost = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
};

enum class TrailerStatus : std::uint32_t { complete = 0, interrupted = 1 };

// Last block of the record, written after a flush: without it a record is incomplete.
struct RecordTrailer {
  RecordId record_id{};
  TrailerStatus status = TrailerStatus::complete;
  std::uint64_t superchunks = 0;
  std::uint64_t data_bytes = 0;  // superchunks only, without padding
  std::int64_t ended_utc_ns = 0;
  std::vector<LinkAccount> links;
  std::optional<std::uint32_t> header_crc;  // RecordHeader::block_crc; nothing: unbound, of an older format
  std::optional<std::uint64_t> blocks;  // of a framed record, whose data_bytes follow from the superchunks
};

enum class BlockCheck { valid, foreign, damaged };  // foreign: no magic

// `block` holds at least kBlockAlignment bytes; what lies beyond the structure is zeroed. Both set
// RecordHeader::block_crc. `why` says what is wrong with a damaged block.
void encode_record_header(RecordHeader& header, std::span<std::byte> block);
BlockCheck decode_record_header(std::span<const std::byte> block, RecordHeader& header,
                                std::string* why = nullptr);
void encode_trailer(const RecordTrailer& trailer, std::span<std::byte> block);
BlockCheck decode_trailer(std::span<const std::byte> block, RecordTrailer& trailer,
                          std::string* why = nullptr);

void encode_frame(const BlockFrame& frame, std::span<std::byte> block);
BlockCheck decode_frame(std::span<const std::byte> block, BlockFrame& frame, std::string* why = nullptr);

// Why a valid frame does not begin block `number` of this record, or nothing.
std::optional<std::string> frame_mismatch(const RecordHeader& record, const BlockFrame& frame,
                                          std::uint64_t number);
// Why a valid trailer block at `offset` does not close this record, or nothing.
std::optional<std::string> trailer_mismatch(const RecordHeader& record, const RecordTrailer& trailer,
                                            std::uint64_t offset);

// a x b x ...; nothing if that exceeds kMaxRecordBytes.
constexpr std::optional<std::uint64_t> bounded_product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t product = 1;
  for (const std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product <= kMaxRecordBytes ? std::optional(product) : std::nullopt;
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Size of a whole record with `superchunks` stored.
constexpr std::uint64_t record_bytes(std::uint64_t superchunks, std::uint64_t superchunk_bytes,
                                     std::uint64_t unit) {
  return unit + round_up(superchunks * superchunk_bytes, unit) + unit;
}

}  // namespace daqwriter
