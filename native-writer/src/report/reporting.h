// Promise: what every command has in common about where its results go.
#pragma once

#include <string>
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
