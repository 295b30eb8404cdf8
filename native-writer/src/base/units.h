// Promise: a size is read exactly or refused with the spelling to use; decimal and binary units never mix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace daqwriter {

// Accepts an unsigned integer with B, KiB, MiB, GiB, TiB (powers of 1024), MB, GB, TB (powers of 1000) or no
// unit (bytes). Throws Refusal for anything else, a bare k/K/M/G/T and kB/KB included.
std::uint64_t parse_size(std::string_view text);

// The largest binary unit that divides `bytes` exactly; parse_size(format_size(n)) == n for every n.
std::string format_size(std::uint64_t bytes);

// "924.3 GB" (decimal, four significant digits) for people.
std::string format_gb(double bytes);

// "%.*g" without the locale.
std::string format_number(double value, int significant_digits = 6);

}  // namespace daqwriter
