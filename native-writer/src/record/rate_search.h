// Promise: the highest rate that an application stands without inhibit. A rate counts only if it was stood
// twice: one lucky trial is not a qualification. The search itself is pure; what a trial is, the caller says.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace daqwriter {

struct RateTrial {
  double factor = 0;  // of the rate asked for
  bool stood = false;
};

struct RateSearch {
  std::vector<RateTrial> trials;         // in the order in which they were made
  std::optional<double> highest;         // stood twice; nothing: not even the lowest one tried
  std::optional<double> lowest_refused;  // not stood; nothing: all of 1 was stood
};

// `guess`: where to begin, a factor. Stops when highest and lowest_refused are within `resolution` (0.02 = 2
// %) of each other, when even a hundredth was not stood, or when `trial` returns nothing (interrupted).
RateSearch search_rate(double guess, double resolution,
                       const std::function<std::optional<bool>(double factor)>& trial);

}  // namespace daqwriter
