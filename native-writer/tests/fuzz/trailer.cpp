// A trailer block with any fields, against a record header with any fields.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace daqwriter;
  constexpr std::size_t kHeaderFields = 128;
  auto input = fuzz::as_input(data, size);
  const fuzz::Bytes first = fuzz::block_of(fuzz::take(input, kHeaderFields), fuzz::kHeaderCrc);
  const fuzz::Bytes last = fuzz::block_of(fuzz::take(input, kBlockAlignment), fuzz::kTrailerCrc);
  RecordHeader header;
  RecordTrailer trailer;
  std::string why;
  const BlockCheck check = decode_trailer(last, trailer, &why);
  fuzz::require((check == BlockCheck::damaged) == !why.empty());
  if (check != BlockCheck::valid) return 0;
  std::uint64_t stored = 0;
  for (const LinkAccount& link : trailer.links) stored += link.stored;
  fuzz::require(stored == trailer.superchunks);
  if (decode_record_header(first, header) != BlockCheck::valid) return 0;
  if (trailer.header_crc) trailer.header_crc = header.block_crc;
  if (header.framed()) {
    const std::uint64_t blocks = trailer.blocks.value_or(0);
    if (trailer_mismatch(header, trailer, header.block_offset(blocks))) return 0;
    fuzz::require(blocks <= header.most_blocks);
    fuzz::require(trailer.superchunks <= blocks * header.superchunks_per_block());
    return 0;
  }
  const std::uint64_t place = header.alignment + round_up(trailer.data_bytes, header.alignment);
  if (trailer_mismatch(header, trailer, place)) return 0;
  fuzz::require(trailer.data_bytes == trailer.superchunks * header.superchunk_bytes);
  return 0;
}
