// Promise: the JSON of all results, as documents and as files.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/feature.h"
#include "base/histogram.h"
#include "base/status.h"
#include "report/output_path.h"

namespace daqwriter {

// As OutputPath::replace; where that fails the document goes to standard output, so that no measurement is
// lost. Throws Failure then too, also when standard output did not take all of it.
void write_json(const OutputPath& path, const nlohmann::ordered_json& document);

// Summary of nanosecond values in microseconds, with the whole histogram.
nlohmann::ordered_json latency_json(const Histogram& nanoseconds, const std::string& definition);

// The name of what a target answered ("EIO"); null: the error, if any, is not its answer.
nlohmann::ordered_json errno_json(int target_errno);

// Null where there is no value.
template <typename Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
nlohmann::ordered_json or_null(const std::string& text);  // "": no text

// Begins every document.
nlohmann::ordered_json document_json(const std::string& tool, const std::string& command,
                                     const std::string& version);

// How a load, or a part of it, ended.
template <typename Result>
nlohmann::ordered_json end_json(const Result& result) {
  return {{"status", run_status_name(result.status)},
          {"error", or_null(result.error)},
          {"errno", errno_json(result.target_errno)}};
}

// Time and context switches.
nlohmann::ordered_json cpu_json(const CpuUse& cpu);

// Each with its name, whether it is in use, and the reason why not.
nlohmann::ordered_json features_json(const std::vector<Feature>& features);

}  // namespace daqwriter
