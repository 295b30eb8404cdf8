#include "record/minidaq_search.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "report/report_json.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kLeastAchieved = 0.999;

std::string rate_text(double bytes_per_s) {
  return format_gb(bytes_per_s) + "/s";
}

}  // namespace

RateSearch search_rate(double guess, double resolution,
                       const std::function<std::optional<bool>(double factor)>& trial) {
  constexpr double kLowest = 0.01;
  RateSearch search;
  const auto stands = [&](double factor) -> std::optional<bool> {
    for (int i = 0; i < 2; ++i) {
      const std::optional<bool> stood = trial(factor);
      if (!stood) return std::nullopt;
      ++search.trials;
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

SearchTrial make_trial(double factor, double asked_bytes_per_s, const MiniDaqResult& r) {
  SearchTrial trial{factor, asked_bytes_per_s};
  trial.stored_bytes_per_s = r.total_ns > 0 ? static_cast<double>(r.payload_bytes) / seconds(r.total_ns) : 0;
  // The target whose source did worst counts: many others must not hide it.
  trial.achieved_fraction = r.targets.front().achieved_fraction();
  for (const TargetResult& one : r.targets)
    trial.achieved_fraction = std::min(trial.achieved_fraction, one.achieved_fraction());
  trial.lost = std::accumulate(r.lost_per_link.begin(), r.lost_per_link.end(), std::uint64_t{0});
  trial.vetoed = r.vetoed;
  trial.busy = r.busy.count();
  trial.stood =
      trial.lost == 0 && trial.vetoed == 0 && trial.busy == 0 && trial.achieved_fraction >= kLeastAchieved;
  return trial;
}

std::string search_trial_text(const SearchTrial& t) {
  return "trial at " + rate_text(t.asked_bytes_per_s) + ": " +
         (t.stood ? "stood"
                  : "not stood (lost " + std::to_string(t.lost) + ", vetoed " + std::to_string(t.vetoed) +
                        ", BUSY " + std::to_string(t.busy) + ", source " +
                        format_number(100 * t.achieved_fraction, 5) + " %)") +
         "\n";
}

std::string search_summary(double asked_bytes_per_s, const RateSearch& found) {
  if (!found.highest) return "no rate was stood twice without inhibit\n";
  return "highest rate stood twice without inhibit: " + rate_text(asked_bytes_per_s * *found.highest) +
         (found.lowest_refused ? "; not stood: " + rate_text(asked_bytes_per_s * *found.lowest_refused)
                               : ", all that was asked for") +
         "\n";
}

Json search_json(const MiniDaqOptions& o, const MiniDaqPlan& plan, double limit_bytes_per_s,
                 const std::vector<SearchTrial>& trials, const RateSearch& found, const MiniDaqResult& last) {
  const double asked = asked_bytes_per_s(o, plan);
  const auto rate = [&](std::optional<double> factor) {
    return factor ? Json(asked * *factor) : Json(nullptr);
  };
  const auto of_trigger = [&](std::optional<double> factor) {
    return factor && o.triggered() ? Json(o.trigger_rate_hz * *factor) : Json(nullptr);
  };
  Json list = Json::array();
  for (const SearchTrial& t : trials) {
    list.push_back({{"factor", t.factor},
                    {"asked_bytes_per_s", t.asked_bytes_per_s},
                    {"stored_bytes_per_s", t.stored_bytes_per_s},
                    {"achieved_fraction", t.achieved_fraction},
                    {"lost", t.lost},
                    {"vetoed", t.vetoed},
                    {"busy_count", t.busy},
                    {"stood", t.stood}});
  }
  Json all = document_json("daqwriter", "minidaq-search", DAQWRITER_VERSION);
  all.update(end_json(last));
  all.update({{"mode", o.triggered() ? "triggered" : "continuous"},
              {"data_path", plan.zero_copy() ? "zero-copy" : "copy"},
              {"applications", o.applications},
              {"targets", o.null_sink ? Json::array({"null"}) : Json(o.targets())},
              {"links", o.links},
              {"writers", o.writers},
              {"request_bytes", o.triggered() ? Json(plan.request_bytes(o)) : Json(nullptr)},
              {"duration_s", o.duration_s},
              {"unpaced_bytes_per_s", limit_bytes_per_s},
              {"asked_bytes_per_s", asked},
              {"highest_bytes_per_s", rate(found.highest)},
              {"highest_trigger_rate_hz", of_trigger(found.highest)},
              {"lowest_refused_bytes_per_s", rate(found.lowest_refused)},
              {"trials", list}});
  return all;
}

}  // namespace daqwriter
