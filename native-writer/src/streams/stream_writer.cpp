#include "streams/stream_writer.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "base/worker_thread.h"

namespace daqwriter {
namespace {

constexpr std::int64_t kIdleNs = 200'000;
constexpr std::uint64_t kPollBytes = 1u << 20;  // completions are looked at after as many bytes at the latest

}  // namespace

StreamWriter::StreamWriter(const Config& config, LinkRing& queue, const EventSource& source, IoEngine& engine,
                           AdlerEngine& adler, ManifestWriter* manifest, std::byte* memory,
                           std::int64_t start_ns, const StopClock& stop, std::atomic<bool>& abort)
    : config_(config),
      queue_(queue),
      source_(source),
      engine_(engine),
      adler_(adler),
      manifest_(manifest),
      memory_(memory),
      stop_(stop),
      abort_(abort),
      ledger_(1, start_ns,
              Arrivals{[](std::int64_t) { return std::uint64_t{0}; },
                       [this] { return source_.offered_bytes(config_.stream); }}) {}

void StreamWriter::run() {
  const CpuUse before = thread_cpu_use();
  try {
    write_events();
    if (blocks_) close_file();
  } catch (const Unanswered& error) {
    account_.unanswered = true;
    fail(error.what(), 0);
  } catch (const std::exception& error) {
    fail(error.what(), target_errno_of(error));
  } catch (...) {
    fail("an unknown error", 0);
  }
  account_.cpu = thread_cpu_use() - before;
}

bool StreamWriter::lost() {
  const Requests* requests = watch_.held(stop_, config_.stall_ns);
  if (!requests) return false;
  account_.unanswered = true;
  account_.unanswered_bytes = requests->in_flight_bytes();
  if (account_.error.empty()) account_.error = requests->error().text;
  return true;
}

void StreamWriter::fail(const std::string& text, int target_errno) {
  account_.error = text;
  account_.target_errno = target_errno;
  abort_.store(true, std::memory_order_relaxed);  // it carries no data
  try {
    abandon_file();
  } catch (const Unanswered& error) {
    account_.unanswered = true;
    account_.error += std::string("; ") + error.what();
  } catch (const std::exception& error) {
    account_.error += std::string("; ") + error.what();
  }
}

void StreamWriter::write_events() {
  while (true) {
    // Read before the queue: if the source had finished by then, a queue found empty stays empty.
    const bool source_finished = source_.finished();
    const bool took = take_events();
    if (source_finished && (!took || stop_.expired(StopClock::kDrainNs))) return;
    if (took) continue;
    if (blocks_ && blocks_->in_flight() > 0) {
      blocks_->poll(kIdleNs);
    } else {
      sleep_until_monotonic_ns(monotonic_ns() + kIdleNs);
    }
  }
}

// False if there was nothing to take.
bool StreamWriter::take_events() {
  const std::uint64_t count = queue_.available();
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < count && bytes < kPollBytes; ++i) {
    bytes += store(queue_.slot(queue_.taken()));
    queue_.take(1);
    queue_.release(1);
  }
  if (blocks_) blocks_->poll();
  return count > 0;
}

// Returns the event's size.
std::uint32_t StreamWriter::store(const std::byte* event) {
  EventHeader header;
  std::memcpy(&header, event, sizeof header);
  if (blocks_ && file_.bytes + header.bytes > config_.file_bytes) close_file();
  if (!blocks_) open_file();
  const std::int64_t since = monotonic_ns();
  const std::int64_t io_before = blocks_->io_ns();
  const bool good = append({event, header.bytes});
  account_.copy_ns += (monotonic_ns() - since) - (blocks_->io_ns() - io_before);
  if (!good) throw Failure(blocks_->error().text, blocks_->error().target_errno);
  if (header.bytes < config_.smallest_parallel_bytes) ++account_.fallback_events;
  if (file_.events++ == 0) file_.first_serial = header.serial;
  file_.last_serial = header.serial;
  file_.bytes += header.bytes;
  ledger_.note_superchunk(0, header.serial, header.arrival_ns);
  blocks_->submit_if_full();
  return header.bytes;
}

// The checksum is taken on the way.
bool StreamWriter::append(std::span<const std::byte> event) {
  while (!event.empty()) {
    const std::span<std::byte> room = blocks_->room(event.size());
    if (room.empty()) return false;
    adler32_ = adler_.update_and_copy(adler32_, room.data(), event.first(room.size()));
    blocks_->filled(room.size());
    event = event.subspan(room.size());
  }
  return true;
}

void StreamWriter::open_file() {
  file_ = {};
  file_.stream = config_.stream;
  file_.number = next_number_++;
  file_.name = stream_file_name(config_.prefix, file_.stream, file_.number);
  file_.run_id = config_.run_id;
  adler32_ = checksum_initial(ChecksumKind::adler32);
  TargetPlan plan = config_.directory;
  plan.path += "/" + file_.name;
  target_ = open_target(plan, round_up(config_.file_bytes, plan.alignment), config_.preallocate,
                        {seconds(config_.stall_ns), &stop_});
  target_->keep();
  blocks_ = std::make_unique<BlockWriter>(BlockWriter::Config{.fd = target_->fd(),
                                                              .target = plan.path,
                                                              .block_bytes = config_.block_bytes,
                                                              .alignment = plan.alignment,
                                                              .depth = config_.io_depth,
                                                              .stall_ns = config_.stall_ns,
                                                              .stop = &stop_,
                                                              .watch = &watch_},
                                          engine_, ledger_, memory_);
}

void StreamWriter::close_file() {
  const bool good = blocks_->finish();
  account_.last_block_ns = monotonic_ns();
  if (!good) throw Failure(blocks_->error().text, blocks_->error().target_errno);
  if (config_.checksum) file_.adler32 = adler32_;
  within("closing the file", [this] {
    target_->truncate_file(file_.bytes);
    target_->flush();
    target_->require_in_place();
    target_->require_whole(file_.bytes);
    target_->close();
    if (manifest_) manifest_->add(file_);
  });
  account_.close_ns += monotonic_ns() - account_.last_block_ns;
  account_.closed_events += file_.events;
  ++account_.closed_files;
  blocks_.reset();
  target_.reset();
}

// The blocks of a failed file that reached the medium stay there, without a line in the manifest.
void StreamWriter::abandon_file() {
  if (!blocks_) return;
  blocks_->finish();  // the kernel gives its buffers back, if it does
  account_.unanswered = account_.unanswered || blocks_->in_flight() > 0;
  account_.unanswered_bytes = blocks_->in_flight_bytes();
  if (account_.unanswered) return;  // a target that does not answer would hold us here too
  within("closing the incomplete file", [this] {
    target_->truncate_file(blocks_->completed_end());
    target_->flush();
    target_->close();
  });
}

void StreamWriter::within(const std::string& what, const std::function<void()>& call) {
  call_within(stop_, StopClock::kCloseNs, config_.stall_ns, file_.name + ": " + what, call);
}

StreamWriter::Account StreamWriter::account() const {
  Account whole = account_;
  whole.events = ledger_.superchunks_stored();
  whole.bytes = ledger_.durable_bytes();
  whole.backlog_high_water_bytes = ledger_.held().needed_bytes();
  return whole;
}

}  // namespace daqwriter
