#include "base/units.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/status.h"

namespace daqwriter {
namespace {

using Unit = std::pair<std::string_view, std::uint64_t>;
constexpr std::uint64_t kKiB = 1024;
constexpr std::array<Unit, 8> kUnits = {{{"B", 1},
                                         {"KiB", kKiB},
                                         {"MiB", kKiB* kKiB},
                                         {"GiB", kKiB* kKiB* kKiB},
                                         {"TiB", kKiB* kKiB* kKiB* kKiB},
                                         {"MB", 1'000'000},
                                         {"GB", 1'000'000'000},
                                         {"TB", 1'000'000'000'000}}};

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Refusal(
      "size '" + std::string(text) + "': " + std::string(why) +
      "; write an integer with B, KiB, MiB, GiB, TiB (powers of 1024) or MB, GB, TB (powers of 1000)");
}

std::uint64_t multiplier(std::string_view text, std::string_view unit) {
  if (unit.empty()) return 1;
  for (const auto& [name, factor] : kUnits) {
    if (name == unit) return factor;
  }
  refuse(text, "'" + std::string(unit) + "' is not a unit that means one thing only");
}

}  // namespace

std::uint64_t parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) refuse(text, "the number does not fit 64 bits");
  if (error != std::errc()) refuse(text, "it does not start with an unsigned integer");
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.size() > 1 && unit.front() == ' ') unit.remove_prefix(1);
  const std::uint64_t factor = multiplier(text, unit);
  if (number > std::numeric_limits<std::uint64_t>::max() / factor)
    refuse(text, "the size does not fit 64 bits");
  return number * factor;
}

std::string format_size(std::uint64_t bytes) {
  for (const std::size_t i : {4u, 3u, 2u, 1u}) {
    const auto& [name, factor] = kUnits[i];
    if (bytes >= factor && bytes % factor == 0) return std::to_string(bytes / factor) + std::string(name);
  }
  return std::to_string(bytes) + "B";
}

std::string format_number(double value, int significant_digits) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::general, significant_digits);
  return error == std::errc() ? std::string(text.data(), end) : "?";
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string format_gb(std::uint64_t bytes) {
  return format_gb(static_cast<double>(bytes));
}

std::string format_gb(double bytes) {
  return format_number(bytes / 1e9, 4) + " GB";
}

}  // namespace daqwriter
