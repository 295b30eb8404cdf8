// Promise: a histogram as HdrHistogram's compressed V2 interchange text (base64 over zlib), readable by any
// HdrHistogram library. The unit of the values travels beside it, since the format has no field for it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/histogram.h"

namespace daqwriter {

std::string encode_hdr_v2(const Histogram& histogram);
std::string base64(std::span<const std::byte> bytes);

}  // namespace daqwriter
