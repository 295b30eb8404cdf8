// A whole small record in memory: header and trailer fields, then the superchunks, through the verifier.
#include "fuzz.h"
#include "verify/block_walk.h"
#include "verify/verifier.h"

namespace daqwriter {
namespace {

constexpr std::size_t kHeaderFields = 128;
constexpr std::size_t kTrailerFields = 192;

// The frames and the trailer in `data` get the ids and checksums that tie them to the header.
void judge_framed(const RecordHeader& header, const RecordTrailer& trailer, fuzz::Bytes& data) {
  if (header.block_bytes > data.size()) return;
  for (std::uint64_t at = 0, number = 0; at + kBlockAlignment <= data.size();
       at += header.block_bytes, ++number) {
    const std::span<std::byte> place = std::span(data).subspan(at, kBlockAlignment);
    BlockFrame frame;
    if (std::to_integer<unsigned>(place[0]) < 16) {
      RecordTrailer here = trailer;
      here.blocks = number;
      encode_trailer(here, place);
    } else if (std::to_integer<unsigned>(place[0]) < 200) {
      std::memcpy(&frame.superchunks, &place[1], sizeof frame.superchunks);
      frame = {header.record_id, number, header.block_crc, frame.superchunks % 256};
      encode_frame(frame, place);
    }
  }
  const std::uint64_t held = data.size() / header.superchunk_bytes;
  Verifier verifier(header, std::min(held, header.intended_superchunks), std::nullopt, nullptr);
  BlockWalk walk(header, verifier);
  constexpr std::size_t kPiece = 1000;
  for (std::size_t at = 0; at < data.size() && !walk.at_end(); at += kPiece)
    walk.feed(std::span(data).subspan(at, std::min(kPiece, data.size() - at)));
  walk.finish();
  verifier.finish();
  const VerifyCounts& counts = verifier.findings().counts;
  fuzz::require(counts.present <= held);
  fuzz::require(counts.faults() == 0 || !verifier.findings().faults.empty());
}

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
  if (header.framed()) return judge_framed(header, trailer, data);
  const std::uint64_t held =
      std::min<std::uint64_t>(header.intended_superchunks, data.size() / header.superchunk_bytes);
  for (const bool known : {true, false}) {
    const std::uint64_t end = header.alignment + round_up(data.size(), header.alignment);
    Verifier verifier(header, held, known ? probe(end) : std::nullopt, probe);
    constexpr std::size_t kPiece = 1000;  // superchunks lie across pieces
    for (std::size_t at = 0; at < data.size() && !verifier.at_end(); at += kPiece)
      verifier.feed(std::span(data).subspan(at, std::min(kPiece, data.size() - at)));
    verifier.finish();
    const VerifyCounts& counts = verifier.findings().counts;
    fuzz::require(counts.present <= data.size() / header.superchunk_bytes);
    fuzz::require((counts.faults() == 0) || !verifier.findings().faults.empty());
  }
}

}  // namespace
}  // namespace daqwriter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  daqwriter::judge(daqwriter::fuzz::as_input(data, size));
  return 0;
}
