#include "format/option_bounds.h"

#include <charconv>
#include <optional>

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
std::optional<Value> read(std::string_view text) {
  Value value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

template <typename Value>
void require_within(const Bounds<Value>& bounds, std::type_identity_t<Value> value) {
  if (!within(bounds, value)) refuse_value(bounds, shown(value));
}

template <typename Value>
Value parse_within(const Bounds<Value>& bounds, std::string_view text) {
  std::optional<Value> value;
  if constexpr (std::is_same_v<Value, std::uint64_t>) {
    try {
      value = parse_size(text);
    } catch (const Refusal& refusal) {
      throw Refusal(std::string(bounds.option) + ": " + refusal.what());
    }
  } else {
    value = read<Value>(text);
  }
  if (!value || !within(bounds, *value)) refuse_value(bounds, text);
  return *value;
}

template void require_within(const Bounds<double>&, double);
template void require_within(const Bounds<std::uint32_t>&, std::uint32_t);
template void require_within(const Bounds<std::uint64_t>&, std::uint64_t);
template double parse_within(const Bounds<double>&, std::string_view);
template std::uint32_t parse_within(const Bounds<std::uint32_t>&, std::string_view);
template std::uint64_t parse_within(const Bounds<std::uint64_t>&, std::string_view);

}  // namespace daqwriter
