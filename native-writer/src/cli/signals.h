// Promise: how an operator ends a command, the same for every program of the bench.
#pragma once

#include <atomic>

namespace daqwriter {

// From now on SIGINT, SIGTERM and SIGHUP write their number into what is returned; a second one of whatever
// kind adds kSecondSignal, a third one ends the process on the spot. A write beyond the limit of a file's
// size, or into a closed pipe, is an error and no signal.
const std::atomic<int>& stop_on_signals();

}  // namespace daqwriter
