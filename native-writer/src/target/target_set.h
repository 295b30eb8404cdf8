// Promise: the targets of one run are each allowed by themselves, and no two of them lead to the same data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/worker_thread.h"
#include "target/target.h"

namespace daqwriter {

// The names in the texts of a repeatable option: a comma separates two of them, and a backslash before a
// comma makes it a part of the name. Throws Refusal for an empty name among several, and for commas where
// what stands around them leads to something that exists, so that it may be meant as one name.
std::vector<std::string> split_targets(const std::vector<std::string>& texts);

// Each load is told this of its targets.
struct LoadTargets {
  std::string target;
  std::vector<std::string> further_targets;  // beside it; the load is for each of them
  bool null_sink = false;
  bool preallocate = true;
  double stall_limit_s = kDefaultStallLimitS;
  Consent consent;

  std::vector<std::string> targets() const;
  std::size_t target_count() const { return 1 + further_targets.size(); }
};

// The names as --target takes them; a single one as it is.
std::string targets_text(const std::vector<std::string>& names);

// The kind of all of them, or "mixed".
std::string kinds_name(const std::vector<TargetPlan>& targets);

// How many of `all`, which include `one`, take their space from the same file system; 1 for a device.
std::size_t sharing_space(const TargetPlan& one, const std::vector<TargetPlan>& all);

// Plans targets one after the other. Nothing is written; the claims on devices last as long as the plans.
class TargetSet {
 public:
  explicit TargetSet(Consent consent, const CallLimits& limits = {}, SystemPaths paths = {});

  // As plan_target(), within the limits; throws Refusal also when an earlier one is the same file or shows
  // the same drive's data. `record_of`: the target as named, when `path` is one of its records.
  TargetPlan plan(const std::string& path, const std::string& record_of = "");

 private:
  TargetPlan examine(const std::string& path, const std::string& name) const;
  void require_other_drive(const std::string& path) const;
  void require_other_file(const TargetPlan& plan, const std::string& its_name) const;

  Consent consent_;
  CallLimits limits_;
  SystemPaths paths_;
  std::vector<std::pair<TargetPlan, std::string>> planned_;  // with names for messages
};

}  // namespace daqwriter
