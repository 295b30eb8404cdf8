#include "sharding.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/status.h"
#include "format/payload.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;

std::uint64_t take_number(std::string_view& text, char end, const std::string& all) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<std::size_t>(rest - text.data());
  const bool at_end = end == '\0' ? used == text.size() : used < text.size() && text[used] == end;
  if (error != std::errc() || !at_end)
    throw Refusal("--location '" + all +
                  "': write hash, modulo or FIRST-LAST=NODE, comma-separated, "
                  "as in 0-999=0,1000-1999=1");
  text.remove_prefix(std::min(used + 1, text.size()));
  return number;
}

}  // namespace

Location Location::parse(const std::string& text) {
  Location location;
  if (text == "hash") return location;
  if (text == "modulo") {
    location.kind = Kind::modulo;
    return location;
  }
  location.kind = Kind::table;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::string_view rest(part);
    Span span;
    span.first = take_number(rest, '-', text);
    span.last = take_number(rest, '=', text);
    span.node = take_number(rest, '\0', text);
    if (span.last < span.first)
      throw Refusal("--location '" + text + "': " + part + " ends before it begins");
    location.table.push_back(span);
  }
  std::sort(location.table.begin(), location.table.end(),
            [](const Span& a, const Span& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < location.table.size(); ++i) {
    if (location.table[i].first <= location.table[i - 1].last)
      throw Refusal("--location '" + text + "': primary key " + std::to_string(location.table[i].first) +
                    " is there twice");
  }
  if (location.table.empty()) throw Refusal("--location: is empty; write hash, modulo or a table");
  return location;
}

std::string Location::text() const {
  if (kind == Kind::hash) return "hash";
  if (kind == Kind::modulo) return "modulo";
  std::string text;
  for (const Span& span : table)
    text += (text.empty() ? "" : ",") + std::to_string(span.first) + "-" + std::to_string(span.last) + "=" +
            std::to_string(span.node);
  return text;
}

Sharding::Sharding(Location location, const std::vector<Shard>& shards)
    : location_(std::move(location)), shards_(shards), buckets_of_(shards.size()) {
  for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
    const unsigned wanted = slot(bucket);
    const auto owner =
        std::find_if(shards.begin(), shards.end(), [&](const Shard& shard) { return wanted <= shard.last; });
    buckets_of_[static_cast<std::size_t>(owner - shards.begin())].push_back(bucket);
  }
  if (location_.kind == Location::Kind::hash) return;
  for (std::size_t node = 0; node < buckets_of_.size(); ++node) {
    if (buckets_of_[node].empty())
      throw Refusal("--location: node " + std::to_string(node) +
                    " owns too few slots to keep events of its own");
  }
  for (const Location::Span& span : location_.table) {
    if (span.node >= shards.size())
      throw Refusal("--location: there is no node " + std::to_string(span.node) +
                    "; the store has nodes 0 to " + std::to_string(shards.size() - 1));
  }
}

std::size_t Sharding::node_of(std::uint64_t primary) const {
  if (location_.kind == Location::Kind::modulo) return primary % buckets_of_.size();
  if (location_.kind == Location::Kind::table) {
    for (const Location::Span& span : location_.table) {
      if (span.first <= primary && primary <= span.last) return span.node;
    }
    throw Refusal("--location has no node for primary key " + std::to_string(primary));
  }
  const unsigned wanted = slot(bucket_of(primary));
  for (std::size_t node = 0; node < shards_.size(); ++node) {
    if (wanted <= shards_[node].last) return node;
  }
  return 0;
}

unsigned Sharding::bucket_of(std::uint64_t primary) const {
  const std::uint64_t hash = daqwriter::scramble(primary);
  if (location_.kind == Location::Kind::hash) return static_cast<unsigned>(hash % kBuckets);
  const std::vector<unsigned>& own = buckets_of_[node_of(primary)];
  return own[hash % own.size()];
}

std::string Sharding::text() const {
  std::string text = std::to_string(kBuckets) + " buckets, " + location_.text();
  if (location_.kind == Location::Kind::hash) return text;  // the slots say where, whoever owns them
  for (const Shard& shard : shards_)
    text += " " + std::to_string(shard.first) + "-" + std::to_string(shard.last);
  return text;
}

}  // namespace hotstore
