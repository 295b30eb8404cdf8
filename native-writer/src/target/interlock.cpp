// Promise: the decision whether a device may be written, from facts alone.
#include "base/units.h"
#include "target/target.h"

namespace daqwriter {
std::string Serials::text() const {
  return joined(names_);
}

std::optional<std::string> interlock_refusal(const DeviceFacts& facts, const Consent& consent) {
  if (facts.partition)
    return facts.name + " is a partition; only a whole drive can be identified and allowed";
  if (facts.system_drive) return facts.name + " holds the running system; no option allows writing to it";
  if (facts.read_only) return facts.name + " is read-only";
  if (!facts.serial && !facts.wwn)
    return facts.name + " has neither serial nor WWN, so it cannot be told from another drive";
  const std::string identity =
      "serial " + facts.serial.value_or("(none)") + ", WWN " + facts.wwn.value_or("(none)");
  if (consent.allow_serial.empty()) {
    return "raw blocks of " + facts.name + " (" + identity +
           ") are written only with --allow-serial naming it";
  }
  const auto names_it = [&](const Serials& given) {
    return (facts.wwn && given.contain(*facts.wwn)) ||
           (facts.serial && !facts.shared_serial && given.contain(*facts.serial));
  };
  if (facts.shared_serial && facts.serial && consent.allow_serial.contain(*facts.serial)) {
    return "--allow-serial " + *facts.serial + " names every NVMe namespace of its controller; give " +
           facts.name + "'s WWN (" + identity + ")";
  }
  if (!names_it(consent.allow_serial)) {
    return "--allow-serial " + consent.allow_serial.text() + " is another drive than " + facts.name + " (" +
           identity + ")";
  }
  if (!facts.mounts.empty()) return "mounted: " + joined(facts.mounts) + "; unmount it";
  if (!facts.swaps.empty()) return "used as swap: " + joined(facts.swaps) + "; swapoff it";
  if (!facts.holders.empty())
    return "in use by " + joined(facts.holders) +
           " (RAID, LVM, encryption or a loop device); stop that first";
  if (!facts.writers.empty()) return "open for writing by " + joined(facts.writers) + "; end that first";
  if (!facts.named.empty())
    return "named by this system: " + joined(facts.named) + "; take it out of there first";
  if (!facts.sets.empty())
    return "belongs to a set of drives: " + joined(facts.sets) +
           "; take it out of that set and wipe it first, which --destroy does not do";
  if (facts.signature && !names_it(consent.destroy_serial)) {
    return "carries a signature (" + *facts.signature +
           ") and so perhaps somebody's data; --destroy with the same serial allows its destruction";
  }
  if (facts.data_at && !consent.own_data && !names_it(consent.destroy_serial)) {
    return "is not empty: it holds data without a known signature, as detectors write it (at offset " +
           std::to_string(*facts.data_at) +
           "); --destroy with the same serial allows its destruction, a purge (nvme format, blkdiscard) "
           "empties it";
  }
  return std::nullopt;
}

}  // namespace daqwriter
