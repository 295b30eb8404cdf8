#include "io/durability.h"

#include <algorithm>
#include <utility>

namespace daqwriter {

DurabilityLedger::DurabilityLedger(std::uint32_t links, std::int64_t start_ns, Arrivals arrivals)
    : start_ns_(start_ns), arrivals_(std::move(arrivals)), accounts_(links) {}

std::uint64_t DurabilityLedger::seal_block(std::uint64_t payload_bytes, bool ends_inside,
                                           std::int64_t now_ns) {
  if (incomplete_++ == 0) busy_since_ns_ = now_ns;
  Block block{payload_bytes, ends_inside, false, 0, std::move(filling_)};
  open_.push_back(std::move(block));
  filling_.clear();
  if (!spare_.empty()) {
    filling_ = std::move(spare_.back());
    spare_.pop_back();
  }
  return first_open_ + open_.size() - 1;
}

void DurabilityLedger::complete_block(std::uint64_t number, std::int64_t now_ns, std::int64_t submitted_ns) {
  Block& block = open_[number - first_open_];
  block.complete = true;
  block.completed_ns = now_ns - start_ns_;
  write_latency_ns_.record(now_ns - submitted_ns);
  service_record_.sample(block.completed_ns, busy_ns(now_ns), durable_bytes());
  const std::uint64_t due = arrivals_.due_bytes(block.completed_ns);
  service_curve_.completed(block.completed_ns, due, block.payload_bytes);
  held_.completed(block.completed_ns, arrivals_.accepted_bytes(), block.payload_bytes);
  durable_bytes_.fetch_add(block.payload_bytes, std::memory_order_relaxed);
  if (history_) history_->completed(block.completed_ns, due, durable_bytes());
  if (--incomplete_ == 0) busy_ns_ += now_ns - busy_since_ns_;
  while (!open_.empty() && open_.front().complete) {
    retire(open_.front());
    spare_.push_back(std::move(open_.front().ends));
    spare_.back().clear();
    open_.pop_front();
    ++first_open_;
  }
}

void DurabilityLedger::retire(const Block& block) {
  std::int64_t durable_ns = std::max(carried_ns_, block.completed_ns);
  for (const End& end : block.ends) {
    latency_ns_.record(durable_ns - end.intended_ns);
    latency_over_time_.record(end.intended_ns, durable_ns - end.intended_ns);
    LinkAccount& account = accounts_[end.link];
    if (account.stored++ == 0) account.first_sequence = end.sequence;
    account.last_sequence = end.sequence;
    durable_ns = block.completed_ns;  // only the first one began in an earlier block
  }
  carried_ns_ = block.ends_inside ? durable_ns : 0;
}

std::int64_t DurabilityLedger::busy_ns(std::int64_t now_ns) const {
  return busy_ns_ + (incomplete_ > 0 ? now_ns - busy_since_ns_ : 0);
}

void DurabilityLedger::observe(std::int64_t now_ns) {
  service_record_.end(now_ns - start_ns_, busy_ns(now_ns), durable_bytes());
  const std::uint64_t due = arrivals_.due_bytes(now_ns - start_ns_);
  service_curve_.observe(now_ns - start_ns_, due);
  if (history_) history_->end(now_ns - start_ns_, due);
  held_.observe(now_ns - start_ns_, arrivals_.accepted_bytes());
}

}  // namespace daqwriter
