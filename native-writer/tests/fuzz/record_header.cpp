// A record header block with any fields: refused with a reason, or within bounds that no product leaves.
#include "fuzz.h"
#include "verify/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace daqwriter;
  auto input = fuzz::as_input(data, size);
  const fuzz::Bytes block = fuzz::block_of(fuzz::take(input, kBlockAlignment), fuzz::kHeaderCrc);
  RecordHeader header;
  std::string why;
  const BlockCheck check = decode_record_header(block, header, &why);
  fuzz::require((check == BlockCheck::damaged) == !why.empty());
  if (check != BlockCheck::valid) return 0;
  constexpr std::uint64_t kHeld = 16;  // a small record's
  const std::uint64_t bytes = ExpectedPayload::bytes(header, kHeld);
  fuzz::require(bytes <= kHeld * (std::uint64_t{kMaxSuperchunkBytes} + sizeof(std::uint32_t)));
  if (header.framed()) {
    fuzz::require(header.superchunks_per_block() > 0 && header.writers <= header.links);
    fuzz::require(header.block_offset(header.most_blocks) <= kMaxRecordBytes + kMaxAlignment);
  }
  fuzz::require(record_bytes(header.intended_superchunks, header.superchunk_bytes, header.alignment) <=
                kMaxRecordBytes + 3 * std::uint64_t{kMaxAlignment});
  return 0;
}
