// Promise: the store's engine on a Redis server or a Redis Cluster. Every
// operation is one script on the node that has the event; times are that node's
// clock.
//
// --replicas and the servers' own settings decide what an acknowledged operation
// survives: Redis answers before its replicas have a write. With
// `replicas` n, an operation counts when n further nodes have confirmed it
// (WAIT), and is `unconfirmed` otherwise. One node may then be lost: the node
// that takes over has all acknowledged operations.
#pragma once

#include <memory>

#include "engine.h"
#include "redis_link.h"
#include "sharding.h"

namespace hotstore {

// Throws Refusal when the store was filled with another location.
std::unique_ptr<Engine> redis_engine(std::shared_ptr<RedisLink> link, const Location& location,
                                     std::size_t primary_bytes);
std::unique_ptr<ValueStore> redis_value_store(std::shared_ptr<RedisLink> link, const Location& location,
                                              std::size_t primary_bytes);

}  // namespace hotstore
