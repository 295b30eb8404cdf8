// Promise: how an operation of the store can end, each way under one name.
// Whatever is not in here (a broken engine, a lost connection) is an exception:
// daqwriter::Failure, or daqwriter::Refusal before anything was done.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hotstore {

using Bytes = std::string;
using View = std::string_view;

enum class Answer {
  ok,
  exists,      // Put of a key that is there
  not_found,   // no such key, or no such event
  locked,      // the event is locked, and no token was given
  lease_lost,  // the token is no longer the event's: its lease ran out, or the
               // event was completed
  changed,     // not as it was expected to be: another one was quicker
  full,        // no room; the caller has to wait: the readout is BUSY
  unconfirmed  // done on one node, and not known to be on as many as was asked
               // for
};

const char* answer_name(Answer answer);

// The store holds something else than was put there, or cannot be read as a store.
class Damage : public daqwriter::Failure {
  using daqwriter::Failure::Failure;
};

// Given out with a lock. Of two tokens for one event the later one is the
// larger.
using Token = std::uint64_t;
constexpr Token kNoToken = 0;

}  // namespace hotstore
