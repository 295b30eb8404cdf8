// The files of one stream: the first byte says how they are listed, the second where the second one begins.
#include "fuzz.h"
#include "verify/stream_verifier.h"

namespace daqwriter {
namespace {

// The run that the seeds are files of.
Manifest small_run() {
  Manifest manifest;
  manifest.prefix = "run";
  manifest.run.shares = {0.7, 0.3};
  manifest.run.event_bytes = 100;
  manifest.run.event_spread = 0.2;
  manifest.run.slots_per_stream = 7;
  return manifest;
}

ClosedFile line_of(std::uint64_t number, std::uint64_t first, std::size_t bytes) {
  const std::uint64_t events = bytes / 100 + 1;
  return {0,          number, stream_file_name("run", 0, number), events, first, first + events - 1, bytes,
          0x12345678, {}};
}

void judge(std::span<const std::byte> input) {
  const auto how = fuzz::take(input, 2);
  if (how.size() < 2) return;
  fuzz::Bytes data(input.begin(), input.end());
  fuzz::seal_frames(data, kEventMagic);
  const std::size_t split = data.size() * std::to_integer<unsigned>(how[1]) / 256;
  const std::span whole(data);
  const unsigned flags = std::to_integer<unsigned>(how[0]);
  Manifest manifest = small_run();
  manifest.files.push_back(line_of(0, 0, split));
  manifest.files.push_back(line_of(1, manifest.files[0].last_serial + 1, data.size() - split));
  if (flags & 4) manifest.end = RunEnd{"complete", {manifest.files[1].last_serial + 1, 0}};
  Findings findings;
  std::uint64_t unvouched = 0;
  StreamVerifier verifier(manifest, 0, findings, unvouched);
  for (const unsigned file : {0u, 1u}) {
    const auto content = file == 0 ? whole.first(split) : whole.subspan(split);
    verifier.begin_file(manifest.files[file].name, flags & (1u << file) ? &manifest.files[file] : nullptr);
    constexpr std::size_t kPiece = 1000;
    for (std::size_t at = 0; at < content.size() && !verifier.at_end(); at += kPiece)
      verifier.feed(content.subspan(at, std::min(kPiece, content.size() - at)));
    verifier.end_file();
  }
  verifier.finish();
  fuzz::require(findings.counts.present <= data.size() / kMinEventBytes);
  fuzz::require(findings.counts.faults() == 0 || findings.total > 0);
}

}  // namespace
}  // namespace daqwriter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  daqwriter::judge(daqwriter::fuzz::as_input(data, size));
  return 0;
}
