// Promise: the payload of (seed, record id, run, link, slot) is the same incompressible bytes on every
// machine, so that the verifier can recompute what must be on the disk without trusting what the writer said
// about it. Record id and run take part, so that blocks left over from an earlier record are recognised, also
// where both have the same seed and were given the same id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/record_format.h"

namespace daqwriter {

// The finaliser of SplitMix64: a bijection whose output passes the usual randomness tests for a counter
// input.
std::uint64_t scramble(std::uint64_t x);

std::uint64_t payload_key(std::uint64_t seed, const RecordId& record_id, std::uint64_t run_key = 0);
void fill_payload(std::span<std::byte> payload, std::uint64_t key, std::uint32_t link, std::uint64_t slot);

}  // namespace daqwriter
