// Promise: the JSON of all results, as documents and as files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/feature.h"
#include "base/histogram.h"
#include "report/output_path.h"

namespace daqwriter {

// As OutputPath::replace; where that fails the document goes to standard output, so that no measurement is
// lost. Throws Failure then too, also when standard output did not take all of it.
void write_json(const OutputPath& path, const nlohmann::ordered_json& document);

// Summary of nanosecond values in microseconds, with the whole histogram.
nlohmann::ordered_json latency_json(const Histogram& nanoseconds, const std::string& definition);

// The name of what a target answered ("EIO"); null: the error, if any, is not its answer.
nlohmann::ordered_json errno_json(int target_errno);

// Each with its name, whether it is in use, and the reason why not.
nlohmann::ordered_json features_json(const std::vector<Feature>& features);

}  // namespace daqwriter
