// Promise: how an operation of the store can end, each way under one name.
// Every other end (a broken engine, a lost connection) is an exception:
// daqwriter::Failure, or daqwriter::Refusal before anything was done.
#pragma once

#include <array>
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
  lease_lost,  // the event no longer has this token: its lease ran out, or the
               // event was completed
  changed,     // not the expected value: another one was quicker
  full,        // no room; the caller has to wait: the readout is BUSY
  unconfirmed  // done on one node; fewer nodes than were asked for confirmed
               // it
};

inline const char* answer_name(Answer answer) {
  static constexpr std::array kNames{"ok",         "exists",  "not found", "locked",
                                     "lease lost", "changed", "full",      "unconfirmed"};
  return kNames[static_cast<std::size_t>(answer)];
}

// The store holds something else than was put there, or cannot be read as a store.
class Damage : public daqwriter::Failure {
  using daqwriter::Failure::Failure;
};

// The engine gives it out with a lock. The later one of two tokens for an event
// is the larger.
using Token = std::uint64_t;
constexpr Token kNoToken = 0;

}  // namespace hotstore
