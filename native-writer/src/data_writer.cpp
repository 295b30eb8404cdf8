#include "data_writer.h"

#include <algorithm>
#include <cstring>

namespace daqwriter {

DataWriter::DataWriter(std::vector<std::unique_ptr<LinkRing>>& rings, const LinkSource& source,
                       BlockWriter& blocks, DurabilityLedger& ledger, const std::atomic<int>& stop_signal,
                       ChecksumKind checksum)
    : rings_(rings),
      source_(source),
      blocks_(blocks),
      ledger_(ledger),
      stop_signal_(stop_signal),
      checksum_(checksum) {}

void DataWriter::run() {
  const CpuUse before = thread_cpu_use();
  while (!blocks_.failed()) {
    // Read before the rings: if the source had finished by then, rings found empty stay empty.
    const bool source_finished = source_.finished();
    const std::uint64_t stored = gather();
    if (stored == 0 && source_finished) break;
    if (source_finished && drain_expired()) break;
    if (stored > 0) continue;
    if (blocks_.in_flight() > 0) {
      blocks_.poll(kIdleNs);
    } else {
      sleep_until_monotonic_ns(monotonic_ns() + kIdleNs);
    }
  }
  blocks_.finish();
  ledger_.observe(monotonic_ns());
  cpu_ = thread_cpu_use() - before;
}

std::uint64_t DataWriter::gather() {
  std::uint64_t stored = 0;
  for (const auto& ring : rings_) {
    const std::uint64_t count = std::min(ring->available(), kFragmentSuperchunks);
    if (count > 0 && !store_fragment(*ring, count)) return stored;
    stored += count;
    if (!blocks_.poll()) return stored;
  }
  return stored;
}

bool DataWriter::store_fragment(LinkRing& ring, std::uint64_t count) {
  const std::int64_t since = monotonic_ns();
  const std::int64_t io_before = blocks_.io_ns();
  const std::uint64_t first = ring.tail();
  bool good = true;
  for (std::uint64_t k = 0; k < count && good; ++k)
    good = store_superchunk(ring.slot(first + k), ring.slot_bytes());
  ring.release(count);
  copy_ns_ += (monotonic_ns() - since) - (blocks_.io_ns() - io_before);
  return good;
}

// Checksum first, over the source: it brings the superchunk into L1, from where the streaming copy takes it.
bool DataWriter::store_superchunk(const std::byte* slot, std::size_t bytes) {
  SuperchunkHeader header;
  std::memcpy(&header, slot, sizeof header);
  const std::byte* payload = slot + sizeof header;
  header.payload_checksum = checksum(checksum_, {payload, header.payload_bytes});
  header.header_crc = header_crc(header);
  if (!blocks_.append(reinterpret_cast<const std::byte*>(&header), sizeof header)) return false;
  if (!blocks_.append(payload, bytes - sizeof header)) return false;
  ledger_.note_superchunk(header.link, header.sequence, header.intended_ns);
  blocks_.submit_if_full();
  return true;
}

// An interrupted record is drained, but not for ever: a drive that hangs must not hold the operator.
bool DataWriter::drain_expired() {
  // Relaxed: the flag carries no data.
  if (stop_signal_.load(std::memory_order_relaxed) == 0) return false;
  if (drain_until_ns_ == 0) drain_until_ns_ = monotonic_ns() + kInterruptedDrainNs;
  return monotonic_ns() >= drain_until_ns_;
}

}  // namespace daqwriter
