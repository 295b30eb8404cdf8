#include "record/rate_search.h"

#include <algorithm>

namespace daqwriter {

RateSearch search_rate(double guess, double resolution,
                       const std::function<std::optional<bool>(double factor)>& trial) {
  constexpr double kLowest = 0.01;
  RateSearch search;
  const auto stands = [&](double factor) -> std::optional<bool> {
    for (int i = 0; i < 2; ++i) {
      const std::optional<bool> stood = trial(factor);
      if (!stood) return std::nullopt;
      search.trials.push_back({factor, *stood});
      if (!*stood) return false;
    }
    return true;
  };
  double factor = std::clamp(guess, kLowest, 1.0);
  while (true) {
    const std::optional<bool> stood = stands(factor);
    if (!stood) return search;
    (*stood ? search.highest : search.lowest_refused) = factor;
    if (!search.lowest_refused) {
      if (factor >= 1) return search;
      factor = std::min(1.0, factor * 1.5);
    } else if (!search.highest) {
      if (factor <= kLowest) return search;
      factor = std::max(kLowest, factor / 2);
    } else {
      if (*search.lowest_refused <= *search.highest * (1 + resolution)) return search;
      factor = (*search.highest + *search.lowest_refused) / 2;
    }
  }
}

}  // namespace daqwriter
