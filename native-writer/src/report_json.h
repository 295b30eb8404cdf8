// Promise: a JSON result appears under its name whole or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "histogram.h"

namespace daqwriter {

struct VerifyCounts;

// Throws Refusal when `path` could not be written later: called before any work. "" and "-" are fine.
void require_writable_output(const std::string& option, const std::string& path);

// Temporary file beside it, fsync, rename; "-" is standard output, "" nothing. Throws Failure.
void write_json(const std::string& path, const nlohmann::ordered_json& document);

// Summary of nanosecond values in microseconds, with the whole histogram.
nlohmann::ordered_json latency_json(const Histogram& nanoseconds, const std::string& definition);

// Each kind of finding of `verify`, of superchunks or of events.
nlohmann::ordered_json counts_json(const VerifyCounts& counts);

}  // namespace daqwriter
