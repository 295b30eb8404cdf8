#include "report/report_json.h"

#include <iostream>

#include "base/histogram.h"
#include "base/status.h"
#include "base/worker_thread.h"
#include "report/reporting.h"

namespace daqwriter {

void check_reporting(const Reporting& reporting, const std::vector<std::string>& used,
                     const CallLimits& limits) {
  const auto look = [reporting, used] {
    reporting.json_path.hold_for_replacement("--json", used);
    std::vector<std::string> others = used;
    if (reporting.json_path.text() != "-") others.push_back(reporting.json_path);
    reporting.line_protocol_path.hold_for_appending("--line-protocol", others);
  };
  limits.within((used.empty() || used.front().empty() ? reporting.json_path.text() : used.front()) +
                    ": looking whether the results lie apart from it",
                look);
}

void check_target_tags(const Reporting& reporting, const std::vector<std::string>& targets) {
  if (targets.size() < 2 || reporting.line_protocol_path.empty()) return;
  const auto given = reporting.tags.find(kTargetTag);
  if (given != reporting.tags.end()) {
    throw Refusal("--tag " + given->first + "=" + given->second + ": with several targets daqwriter sets '" +
                  kTargetTag + "' itself; use another key");
  }
  for (const std::string& target : targets) {
    if (target.find('\n') == std::string::npos && target.back() != '\\') continue;
    throw Refusal("--line-protocol: the name of --target " + target +
                  " cannot be a tag, since it has a line break or ends in a backslash; leave it away");
  }
}

void write_json(const OutputPath& path, const nlohmann::ordered_json& document) {
  if (path.empty()) return;
  // Names of files may hold any byte.
  using Json = nlohmann::ordered_json;
  const std::string text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  try {
    path.replace(text);
  } catch (const Failure& failure) {
    if (path.text() == "-") throw;
    std::cout << text << std::flush;
    throw Failure(std::string(failure.what()) +
                  (std::cout ? "; the results went to standard output instead" : ""));
  }
}

nlohmann::ordered_json latency_json(const Histogram& nanoseconds, const std::string& definition) {
  constexpr double kNsPerUs = 1e3;
  const auto us = [&](double percent) {
    return static_cast<double>(nanoseconds.percentile(percent)) / kNsPerUs;
  };
  return {{"definition", definition},
          {"count", nanoseconds.count()},
          {"min", static_cast<double>(nanoseconds.min()) / kNsPerUs},
          {"mean", nanoseconds.mean() / kNsPerUs},
          {"p50", us(50)},
          {"p90", us(90)},
          {"p99", us(99)},
          {"p99_9", us(99.9)},
          {"p99_99", us(99.99)},
          {"max", static_cast<double>(nanoseconds.max()) / kNsPerUs},
          {"hdr_unit", "ns"},
          {"hdr", encode_hdr_v2(nanoseconds)}};
}

nlohmann::ordered_json errno_json(int target_errno) {
  if (target_errno == 0) return nullptr;
  return errno_name(target_errno);
}

nlohmann::ordered_json or_null(const std::string& text) {
  return or_null(text.empty() ? std::nullopt : std::optional(text));
}

nlohmann::ordered_json document_json(const std::string& tool, const std::string& command,
                                     const std::string& version) {
  return {{"schema_version", 1}, {"tool", tool}, {"command", command}, {"version", version}};
}

nlohmann::ordered_json cpu_json(const CpuUse& cpu) {
  return {{"user_s", cpu.user_s},
          {"system_s", cpu.system_s},
          {"voluntary_context_switches", cpu.voluntary_context_switches},
          {"involuntary_context_switches", cpu.involuntary_context_switches}};
}

nlohmann::ordered_json features_json(const std::vector<Feature>& features) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const Feature& each : features) {
    all.push_back({{"name", each.name},
                   {"in_use", each.in_use},
                   {"reason", each.in_use ? Json(nullptr) : Json(each.reason)}});
  }
  return all;
}

}  // namespace daqwriter
