#include "format/option_bounds.h"

#include <charconv>

#include "base/status.h"
#include "base/units.h"

namespace daqwriter {
namespace {

std::string shown(double value) {
  return format_number(value, 9);
}

std::string shown(std::uint32_t value) {
  return std::to_string(value);
}

std::string shown(std::uint64_t bytes) {
  return format_size(bytes);
}

template <typename Value>
[[noreturn]] void refuse_value(const Bounds<Value>& bounds, std::string_view value) {
  const std::string unit = *bounds.unit ? std::string(" ") + bounds.unit : "";
  throw Refusal(std::string(bounds.option) + " " + std::string(value) + ": give " + shown(bounds.least) +
                " to " + shown(bounds.most) + unit);
}

// Written so that NaN is outside.
template <typename Value>
bool within(const Bounds<Value>& bounds, Value value) {
  return value >= bounds.least && value <= bounds.most;
}

template <typename Value>
void require_bounds(const Bounds<Value>& bounds, Value value) {
  if (!within(bounds, value)) refuse_value(bounds, shown(value));
}

template <typename Value>
Value parse(const Bounds<Value>& bounds, std::string_view text) {
  Value value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !within(bounds, value))
    refuse_value(bounds, text);
  return value;
}

}  // namespace

void require_within(const Bounds<double>& bounds, double value) {
  require_bounds(bounds, value);
}

void require_within(const Bounds<std::uint32_t>& bounds, std::uint32_t value) {
  require_bounds(bounds, value);
}

void require_within(const Bounds<std::uint64_t>& bounds, std::uint64_t value) {
  require_bounds(bounds, value);
}

double parse_within(const Bounds<double>& bounds, std::string_view text) {
  return parse(bounds, text);
}

std::uint32_t parse_within(const Bounds<std::uint32_t>& bounds, std::string_view text) {
  return parse(bounds, text);
}

std::uint64_t parse_within(const Bounds<std::uint64_t>& bounds, std::string_view text) {
  try {
    const std::uint64_t bytes = parse_size(text);
    if (within(bounds, bytes)) return bytes;
  } catch (const Refusal& refusal) {
    throw Refusal(std::string(bounds.option) + ": " + refusal.what());
  }
  refuse_value(bounds, text);
}

}  // namespace daqwriter
