// Promise: which node an event is on, from its primary key alone and without
// asking anybody (zero hops).
//
// Events are spread over buckets; a bucket's tag stands in braces in every
// Redis key of its events, so that an event, its lock and the bucket's list of
// unlocked events are in one slot and change in one step. Two deployments:
// `hash`, where any node has any event (detached storage), and a location map,
// where the readout node that puts an event also keeps it (base: data stay
// where they came in).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redis_link.h"

namespace hotstore {

struct Location {
  enum class Kind { hash, modulo, table } kind = Kind::hash;
  struct Span {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::size_t node = 0;
  };
  std::vector<Span> table;

  // "hash", "modulo" (primary key modulo nodes) or "0-999=0,1000-1999=1".
  // Throws Refusal.
  static Location parse(const std::string& text);
  std::string text() const;
};

class Sharding {
 public:
  static constexpr unsigned kBuckets = 64;

  // Throws Refusal for a location map that names a node that is not there, or
  // nodes without a bucket.
  Sharding(Location location, const std::vector<Shard>& shards);

  unsigned bucket_of(std::uint64_t primary) const;
  std::size_t node_of(std::uint64_t primary) const;
  static std::string tag(unsigned bucket) { return "{" + std::to_string(bucket) + "}"; }
  static unsigned slot(unsigned bucket) { return slot_of(tag(bucket)); }
  std::string text() const;  // a store that was filled with another one does not
                             // find its events

 private:
  Location location_;
  std::vector<Shard> shards_;
  std::vector<std::vector<unsigned>> buckets_of_;  // of each node
};

}  // namespace hotstore
