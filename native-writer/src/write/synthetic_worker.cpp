#include "write/synthetic_worker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/status.h"
#include "format/payload.h"

namespace daqwriter {
namespace {

constexpr std::int64_t kWorkerWaitNs = 10'000'000;
constexpr std::size_t kPage = 4096;

using Stamp = std::array<std::uint64_t, 2>;

}  // namespace

// Every page differs from every other one, so that no drive can gain by recognising repetitions.
void stamp_pages(std::span<std::byte> block, std::uint64_t offset, std::uint64_t turn) {
  for (std::size_t page = 0; page < block.size(); page += kPage) {
    const Stamp stamp = {offset + page, turn};
    std::memcpy(block.data() + page, stamp.data(), sizeof stamp);
  }
}

SyntheticWorker::SyntheticWorker(SharedLoad& shared, const WriteTargetPlan& plan, int fd,
                                 std::uint32_t number, const EngineFactory& make_engine)
    : shared_(shared),
      plan_(plan),
      fd_(fd),
      number_(number),
      block_(shared.options.block_bytes),
      memory_(shared.options.io_depth * block_, numa_node_of(plan.placement.cpus[number])),
      engine_(make_engine(shared.options.io_depth)),
      slots_(shared.options.io_depth),
      order_(plan.part_blocks, shared.options.seed + number),
      requests_({.fd = fd,
                 .target = plan.target.path,
                 .direction = shared.options.reads ? IoDirection::read : IoDirection::write,
                 .depth = shared.options.io_depth,
                 .stall_ns = to_ns(shared.options.stall_limit_s),
                 .stop = &shared.stop,
                 .watch = &watch_},
                shared.options.io_depth, *engine_) {
  if (!shared.options.zeros) fill_payload({memory_.data(), memory_.size()}, shared.options.seed, number, 0);
  const iovec whole{memory_.data(), memory_.size()};
  engine_->register_memory({&whole, 1});
  engine_->register_file(fd_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].data = memory_.data() + i * block_;
    free_.push_back(i);
  }
}

void SyntheticWorker::run(std::int64_t deadline_ns) {
  const CpuUse before = thread_cpu_use();
  reap();  // from now on the clock goes
  while (!requests_.failed()) {
    if (requests_.now_ns() >= deadline_ns || stopped()) {
      requests_.drop_waiting();
    } else {
      prepare_requests(plan_.blocks_per_thread);
    }
    requests_.submit(true);
    if (requests_.idle()) break;
    reap();
  }
  requests_.drop_waiting();
  while (requests_.in_flight() > 0 && !requests_.given_up()) reap();
  if (requests_.failed()) shared_.failed.store(true, std::memory_order_relaxed);
  result_.cpu = thread_cpu_use() - before;
}

WriteThreadResult SyntheticWorker::result() const {
  WriteThreadResult whole = result_;
  whole.bytes = bytes();
  return whole;
}

// Relaxed loads: the flags carry no data, and seeing them a little later does no harm.
bool SyntheticWorker::stopped() const {
  return shared_.stop.asked() || shared_.failed.load(std::memory_order_relaxed);
}

void SyntheticWorker::prepare_requests(std::uint64_t blocks) {
  for (; !free_.empty() && issued_ < blocks; ++issued_) {
    const std::size_t index = free_.back();
    free_.pop_back();
    const std::uint64_t turn = issued_ % plan_.part_blocks;
    const std::uint64_t place = shared_.options.random ? order_(turn) : turn;
    Slot& slot = slots_[index];
    slot.offset = (number_ * plan_.part_blocks + place) * block_;
    slot.piece = {slot.data, block_};
    slot.submitted_ns = requests_.now_ns();
    // A stamp of its own keeps an earlier answer in this buffer from passing for this read.
    const std::uint64_t turn_of_stamp = shared_.options.reads ? 0 : issued_;
    if (!shared_.options.zeros) stamp_pages({slot.data, block_}, slot.offset, turn_of_stamp);
    requests_.ask(index, {&slot.piece, 1}, slot.offset, block_);
  }
}

// Checks that the bytes read are those written before: otherwise the rate is that of something else.
bool SyntheticWorker::check(const Slot& slot) {
  const WriteOptions& o = shared_.options;
  if (!o.reads || o.zeros || o.null_sink) return true;
  for (std::size_t page = 0; page < block_; page += kPage) {
    const Stamp expected = {slot.offset + page, kPrefillTurn};
    if (std::memcmp(slot.data + page, expected.data(), sizeof expected) == 0) continue;
    requests_.end({EIO, slot.offset + page,
                   plan_.target.path + ": the read of " + std::to_string(block_) + " B at offset " +
                       std::to_string(slot.offset) + " returned other data at offset " +
                       std::to_string(slot.offset + page) + " than was written there before"});
    return false;
  }
  return true;
}

void SyntheticWorker::reap() {
  requests_.reap(1, kWorkerWaitNs, [this](std::size_t index) { complete(index); });
}

void SyntheticWorker::complete(std::size_t index) {
  const Slot& slot = slots_[index];
  if (!check(slot)) return;
  latency_ns_.record(requests_.now_ns() - slot.submitted_ns);
  bytes_.store(bytes() + block_, std::memory_order_relaxed);
  result_.end_ns = requests_.now_ns() - shared_.start_ns.load(std::memory_order_relaxed);
  free_.push_back(index);
}

}  // namespace daqwriter
