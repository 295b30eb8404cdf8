// Promise: the highest rate that an application stands without inhibit, and the account of the search for it
// (inventory/schemas/daqwriter-minidaq-search.schema.json). A rate counts only if it was stood twice: one
// lucky trial is not a qualification.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "record/minidaq.h"

namespace daqwriter {

struct RateSearch {
  std::size_t trials = 0;
  std::optional<double> highest;         // stood twice; nothing: not even the lowest one tried
  std::optional<double> lowest_refused;  // not stood; nothing: all of 1 was stood
};

// Pure: `trial` says what a trial is. `guess`: where to begin, a factor. Stops when highest and
// lowest_refused are within `resolution` (0.02 = 2
// %) of each other, when even a hundredth was not stood, or when `trial` returns nothing (interrupted).
RateSearch search_rate(double guess, double resolution,
                       const std::function<std::optional<bool>(double factor)>& trial);

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
// `last`: how its last record ended, and so the search.
nlohmann::ordered_json search_json(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                                   double limit_bytes_per_s, const std::vector<SearchTrial>& trials,
                                   const RateSearch& found, const MiniDaqResult& last);

}  // namespace daqwriter
