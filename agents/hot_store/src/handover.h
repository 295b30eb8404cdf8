// Promise: how far apart two CPUs are: the time that a cache line takes from a
// thread that wrote it to another one that waits for it.
#pragma once

#include <optional>

namespace hotstore {

// Mean of all hand-overs within `seconds`, in nanoseconds, between two threads
// on the CPUs that the scheduler gives them. None where this process may use one
// CPU only.
std::optional<double> handover_ns(double seconds);

}  // namespace hotstore
