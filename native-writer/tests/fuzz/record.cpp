// A whole small record in memory: header and trailer fields, then the superchunks, through the verifier.
#include "fuzz.h"
#include "verify/verifier.h"

namespace daqwriter {
namespace {

constexpr std::size_t kHeaderFields = 112;
constexpr std::size_t kTrailerFields = 192;

void judge(std::span<const std::byte> input) {
  RecordHeader header;
  const fuzz::Bytes first = fuzz::block_of(fuzz::take(input, kHeaderFields), fuzz::kHeaderCrc);
  const auto trailer_fields = fuzz::take(input, kTrailerFields);
  if (decode_record_header(first, header) != BlockCheck::valid) return;
  fuzz::Bytes data(input.begin(), input.end());
  fuzz::seal_frames(data, kSuperchunkMagic);
  RecordTrailer trailer;
  const bool closed =
      decode_trailer(fuzz::block_of(trailer_fields, fuzz::kTrailerCrc), trailer) == BlockCheck::valid;
  if (trailer.header_crc) trailer.header_crc = header.block_crc;
  const auto probe = [&](std::uint64_t offset) {
    const bool here = closed && !trailer_mismatch(header, trailer, offset);
    return here ? std::optional(trailer) : std::nullopt;
  };
  const std::uint64_t held =
      std::min<std::uint64_t>(header.intended_superchunks, data.size() / header.superchunk_bytes);
  for (const bool known : {true, false}) {
    const std::uint64_t end = header.alignment + round_up(data.size(), header.alignment);
    Verifier verifier(header, held, known ? probe(end) : std::nullopt, probe);
    constexpr std::size_t kPiece = 1000;  // superchunks lie across pieces
    for (std::size_t at = 0; at < data.size() && !verifier.at_end(); at += kPiece)
      verifier.feed(std::span(data).subspan(at, std::min(kPiece, data.size() - at)));
    verifier.finish();
    const VerifyCounts& counts = verifier.counts();
    fuzz::require(counts.present <= data.size() / header.superchunk_bytes);
    fuzz::require((counts.faults() == 0) || !verifier.faults().empty());
  }
}

}  // namespace
}  // namespace daqwriter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  daqwriter::judge(daqwriter::fuzz::as_input(data, size));
  return 0;
}
