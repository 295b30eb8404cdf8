// Promise: the account of a search for the highest rate without inhibit
// (inventory/schemas/daqwriter-minidaq-search.schema.json).
#pragma once

#include <string>
#include <vector>

#include "record/minidaq.h"
#include "record/rate_search.h"

namespace daqwriter {

struct SearchTrial {
  double factor = 0;
  double asked_bytes_per_s = 0;
  double stored_bytes_per_s = 0;
  double achieved_fraction = 0;  // of the source
  std::uint64_t lost = 0;
  std::uint64_t vetoed = 0;
  std::uint64_t busy = 0;
  bool stood = false;
};

// Stood: nothing lost, no trigger vetoed, never BUSY, and the source really offered the load.
SearchTrial make_trial(double factor, double asked_bytes_per_s, const MiniDaqResult& result);
std::string search_trial_text(const SearchTrial& trial);
std::string search_summary(double asked_bytes_per_s, const RateSearch& found);
nlohmann::ordered_json search_json(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                                   double limit_bytes_per_s, const std::vector<SearchTrial>& trials,
                                   const RateSearch& found, RunStatus status, const std::string& error,
                                   int target_errno);

}  // namespace daqwriter
