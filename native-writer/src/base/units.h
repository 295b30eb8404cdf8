// Promise: a size is read exactly or refused with the spelling to use; decimal and binary units never mix.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace daqwriter {

// Accepts an unsigned integer with B, KiB, MiB, GiB, TiB (powers of 1024), MB, GB, TB (powers of 1000) or no
// unit (bytes). Throws Refusal for anything else, a bare k/K/M/G/T and kB/KB included.
std::uint64_t parse_size(std::string_view text);

// The largest binary unit that divides `bytes` exactly; parse_size(format_size(n)) == n for every n.
std::string format_size(std::uint64_t bytes);

// "924.3 GB" (decimal, four significant digits) for people.
std::string format_gb(double bytes);
std::string format_gb(std::uint64_t bytes);

// "%.*g" without the locale.
std::string format_number(double value, int significant_digits = 6);

// The whole text as a number; nothing if it is anything else.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::string joined(const std::vector<std::string>& words, const char* separator = ", ");

}  // namespace daqwriter
