// Promise: a JSON result appears under its name whole or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/feature.h"
#include "base/histogram.h"

namespace daqwriter {

// Throws Refusal when `path` ("-": standard output, "": nowhere) could not be written later, or when writing
// it would change one of `used`, the files and directories that the command reads or writes: called before
// any work.
void require_writable_output(const std::string& option, const std::string& path,
                             const std::vector<std::string>& used = {});

// Temporary file beside it, fsync, rename, fsync of the directory; "-" is standard output, "" nothing. Throws
// Failure, also when standard output did not take all of it.
void write_json(const std::string& path, const nlohmann::ordered_json& document);

// Summary of nanosecond values in microseconds, with the whole histogram.
nlohmann::ordered_json latency_json(const Histogram& nanoseconds, const std::string& definition);

// The name of what a target answered ("EIO"); null: the error, if any, is not its answer.
nlohmann::ordered_json errno_json(int target_errno);

// Each with its name, whether it is in use, and the reason why not.
nlohmann::ordered_json features_json(const std::vector<Feature>& features);

}  // namespace daqwriter
