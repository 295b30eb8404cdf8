// Promise: a backlog for which the store or this machine's memory has no room
// is refused before anything is opened, with the arithmetic.
#pragma once

#include "load.h"
#include "store_options.h"

namespace hotstore {

// Bytes that `backlog_bytes` of values of `value_bytes` take in the engine's
// own form.
double backlog_room(const std::string& engine, std::uint64_t value_bytes, std::uint64_t backlog_bytes);

// Throws Refusal. A default backlog may be larger than --capacity: a store that
// is full makes the producers wait too.
void check_backlog(const StoreOptions& store, const LoadOptions& load, bool backlog_given);

}  // namespace hotstore
