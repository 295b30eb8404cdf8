// Promise: what every command has in common about where its results go.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/worker_thread.h"
#include "report/line_protocol.h"
#include "report/output_path.h"

namespace daqwriter {

// Where a command leaves its results, and how often it speaks while it runs.
struct Reporting {
  double interval_s = 0.1;
  OutputPath json_path;           // "-": standard output, "": nowhere
  OutputPath line_protocol_path;  // "": nowhere
  Tags tags;
};

// What a load took and stored, by intervals.
struct Series {
  std::vector<double> t_s;  // end of each interval
  std::vector<std::uint64_t> offered_bytes;
  std::vector<std::uint64_t> stored_bytes;
  std::vector<std::uint64_t> backlog_bytes;  // at the end of the interval

  // `offered` and `stored` since the start.
  void add(double t, std::uint64_t offered, std::uint64_t stored, std::uint64_t backlog) {
    t_s.push_back(t);
    offered_bytes.push_back(offered - std::exchange(seen_offered, offered));
    stored_bytes.push_back(stored - std::exchange(seen_stored, stored));
    backlog_bytes.push_back(backlog);
  }
  std::uint64_t seen_offered = 0;
  std::uint64_t seen_stored = 0;
};

// Throws Refusal: --interval, --json and --line-protocol must be usable before any work is done, and apart
// from each other and from `used`, all that the command reads or writes besides. Unanswered when a drive does
// not say within the limit, or before an interruption's time is over, what these are.
void check_reporting(const Reporting& reporting, const std::vector<std::string>& used = {},
                     const CallLimits& limits = {});

// Throws Refusal unless line protocol can tell these targets apart by their tag: with several, records of
// each one carry target=PATH beside those of their sum, which do not.
void check_target_tags(const Reporting& reporting, const std::vector<std::string>& targets);
constexpr const char* kTargetTag = "target";

}  // namespace daqwriter
