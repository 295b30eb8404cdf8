"""BIOS attributes as data: which attribute and value a setting means on this machine, and whether it is in force. Pure.

Promises: a vendor's entry of roles/bios/vars decides, no vendor is named here; what the BIOS lacks is said with the
name that was looked for; values are text, as BIOS attribute registries have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.bench_state import tuning_record

SETTINGS = ("power_profile", "cstates", "turbo", "memory_speed", "cooling")
WAITING = "waiting for a reboot"
GRACEFUL_S_MAX = 180.0  # an operating system with services to stop; then the power is cut
NO_SETTINGS = "the BMC offers no resource for pending BIOS settings (@Redfish.Settings, Bios/SD, Bios/Settings)"
# What a BIOS changes by itself, and what is nobody's to put back: clocks, the order of boot devices, which follows the devices that are
# there, and passwords, which no service tells.
VOLATILE = re.compile(
    r"(?:Sys(?:tem)?|Current)?(?:Date|Time|DateTime)|.*(?:BootOrder|BootSeq|BootSources|BootSequence|HddSeq|OneTimeBoot).*|.*Password.*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Firmware:
    """The BMC's account of the BIOS."""

    current: Mapping[str, Any]
    pending: Mapping[str, Any]
    offered: Mapping[str, list[str]] = field(default_factory=dict)  # by the attribute registry; empty: it does not say
    fixed: frozenset[str] = frozenset()  # read-only by the attribute registry
    unkept: frozenset[str] = frozenset()  # commands and secrets by the attribute registry: nothing to put back
    settable: bool = True  # the service has a resource for pending settings
    told: Mapping[str, str] = field(
        default_factory=dict
    )  # what the BIOS said at its last start of values that it did not take

    def verdict(self, names: Iterable[str]) -> str:
        """Return the BIOS's words on attributes that it did not take, for the end of a sentence; empty where it has none."""
        words = " ".join(self.told[name] for name in names if name in self.told)
        return f"; the BIOS says: {words}" if words else ""

    def after_reboot(self, name: str) -> str:
        """Return the value that the attribute will have."""
        return text_of(self.pending.get(name, self.current.get(name)))


@dataclass
class Wish:
    """One attribute of one setting."""

    attribute: str
    accepted: list[str]  # any of them is what was asked
    value: str = ""  # the one to write
    bound_to: str = ""  # cannot be set now: it follows from this attribute, which has another value

    def met_by(self, value: str) -> bool:
        """Says whether a value is what was asked."""
        return value in self.accepted


@dataclass
class Plan:
    """The change to make for one setting."""

    setting: str
    asked: str
    wishes: list[Wish] = field(default_factory=list)
    unsupported: str = ""
    fallback: str = ""  # why the alternative that this BIOS has is less than what was asked

    @property
    def id(self) -> str:
        """Return the record's name."""
        return "bios-" + self.setting.replace("_", "-")


def text_of(value: Any) -> str:
    """Return an attribute's value as text; booleans as JSON writes them."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def entries_of(vendors: dict[str, Any], key: str, setting: str) -> list[tuple[dict[str, Any], str]]:
    """Return the alternatives of a setting with the suffix that their names may have."""
    vendor = vendors[key]
    own = [(entry, str(vendor.get("suffix", ""))) for entry in vendor["settings"].get(setting, [])]
    for other in vendor.get("same_names_as", []):
        own += entries_of(vendors, other, setting)
    return own


def beside_of(vendors: dict[str, Any], key: str) -> list[str]:
    """Return the paths of resources whose attributes count beside those of the BIOS."""
    own = [key, *vendors[key].get("same_names_as", [])]
    return [path for each in own for path in vendors[each].get("beside", [])]


def parts_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the attributes that make up one alternative."""
    return list(entry.get("all", [entry]))


def found_names(name: str, suffix: str, present: Mapping[str, Any]) -> list[str]:
    """Return the attributes of this BIOS that a name of the data means."""
    if name in present:
        return [name]
    form = re.compile(re.escape(name) + suffix, re.IGNORECASE)
    return sorted(each for each in present if form.fullmatch(each))


def holders(vendors: dict[str, Any], key: str, present: Mapping[str, Any]) -> dict[str, str]:
    """Return every attribute of this BIOS that the vendor's data names, with the attribute=value that sets it free.

    Empty where it is always free. A profile holds the other attributes that it moves."""
    found: dict[str, str] = {}
    for setting in SETTINGS:
        for entry, suffix in entries_of(vendors, key, setting):
            for part in parts_of(entry):
                bond = part.get("only_with", {})
                text = f"{bond['attribute']}={bond['value']}" if bond.get("attribute") in present else ""
                for name in found_names(part["attribute"], suffix, present):
                    found.setdefault(name, text)
    for each in [key, *vendors[key].get("same_names_as", [])]:
        moves = vendors[each].get("profile_moves", {})
        if moves and moves["only_with"]["attribute"] in present:
            text = f"{moves['only_with']['attribute']}={moves['only_with']['value']}"
            found |= {name: text for name in moves["attributes"] if name in present and name not in found}
    return found


def is_held(holder: str, values: Mapping[str, Any]) -> bool:
    """Says whether an attribute cannot be set while the others have these values; `holder` as `holders` gives it."""
    name, _equals, value = holder.partition("=")
    return bool(name) and text_of(values.get(name)) != value


def plan(vendors: dict[str, Any], key: str, setting: str, asked: str, firmware: Firmware) -> Plan:
    """Choose the attributes and values for one setting."""
    result = Plan(setting, asked)
    entries = entries_of(vendors, key, setting)
    looked_for = []
    for entry, suffix in entries:
        parts = parts_of(entry)
        looked_for.append(" with ".join(part["attribute"] for part in parts))
        names = [found_names(part["attribute"], suffix, firmware.current) for part in parts]
        if all(names):
            fault = ""
            for part, found in zip(parts, names):
                for name in found:
                    fault = fault or _add_wish(result, part, name, asked, firmware)
            result.unsupported = fault
            result.fallback = str(entry.get("fallback", "")).strip()
            break
    else:
        tried = " or ".join(looked_for)
        result.unsupported = (
            f"the BIOS has no such attribute (looked for {tried})"
            if tried
            else "no attribute for it is known of this vendor's BIOS"
        )
    return result


def _add_wish(result: Plan, part: dict[str, Any], name: str, asked: str, firmware: Firmware) -> str:
    """Add one attribute; return why it cannot be had, if so."""
    accepted = [text_of(value) for value in part["values"].get(asked, [])]
    if not accepted:
        return f"no value of {name} is known that means {asked}"
    wish = Wish(name, accepted)
    result.wishes.append(wish)
    offered = firmware.offered.get(name, [])
    possible = [value for value in accepted if value in offered] if offered else accepted
    if not possible and not wish.met_by(text_of(firmware.current[name])):
        return (
            f"{name} does not offer {' or '.join(accepted)} for {asked}"
            f" (it offers {', '.join(offered)}, and is {text_of(firmware.current[name])})"
        )
    # One that is in force, or already pending, stays: there is nothing to gain from another word for it.
    standing = firmware.after_reboot(name)
    wish.value = standing if wish.met_by(standing) else (possible or accepted)[0]
    condition = part.get("only_with")
    if condition and condition["attribute"] in firmware.current:
        wish.bound_to = f"{condition['attribute']}={condition['value']}"
    return ""


def resolve_bonds(plans: list[Plan], firmware: Firmware) -> None:
    """Keep a bond only where the attribute it speaks of will have another value once everything is in force."""
    wanted = {wish.attribute: wish.value for each in plans if not each.unsupported for wish in each.wishes}
    for each in plans:
        for wish in each.wishes:
            name = wish.bound_to.partition("=")[0]
            if not is_held(wish.bound_to, {name: wanted.get(name, firmware.after_reboot(name))}):
                wish.bound_to = ""


def to_write(plans: list[Plan], firmware: Firmware) -> dict[str, str]:
    """Return what must be made pending."""
    return {
        wish.attribute: wish.value
        for each in plans
        if not each.unsupported
        for wish in each.wishes
        if not wish.bound_to and not wish.met_by(firmware.after_reboot(wish.attribute))
    }


def joined(values: Mapping[str, Any], names: list[str]) -> str:
    """Return the values of some attributes for people."""
    return ", ".join(f"{name}={text_of(values.get(name))}" for name in names)


def record_of(
    each: Plan,
    before: Mapping[str, Any],
    now: Firmware,
    written: Mapping[str, str],
    refusals: Mapping[str, str],
    restarted: str = "",
) -> dict[str, str]:
    """Return the record of facts/tuning.json for one setting. `restarted` says how the machine was restarted."""
    names = [wish.attribute for wish in each.wishes]
    record = tuning_record(
        each.id,
        role="bios",
        subject=" and ".join(names) or "firmware",
        asked=each.asked,
        before=joined(before, names),
        applied=joined(written, [name for name in names if name in written and name not in refusals]),
        read_back=joined(now.current, names),
    )
    record["status"], record["detail"] = _judge(each, before, now, refusals, restarted)
    return record


def _judge(
    each: Plan, before: Mapping[str, Any], now: Firmware, refusals: Mapping[str, str], restarted: str
) -> tuple[str, str]:
    if each.unsupported:
        return "unsupported", each.unsupported
    refused = [refusals[wish.attribute] for wish in each.wishes if wish.attribute in refusals]
    if refused:
        return "refused", "; ".join(refused)
    missing = [wish for wish in each.wishes if not wish.met_by(text_of(now.current.get(wish.attribute)))]
    if not missing:
        if each.fallback:
            held = joined(now.current, [wish.attribute for wish in each.wishes])
            return "unsupported", f"a fallback is in force ({held}), which is not {each.asked}: {each.fallback}"
        moved = any(before.get(wish.attribute) != now.current.get(wish.attribute) for wish in each.wishes)
        return ("applied", restarted) if moved else ("unchanged", "")
    waiting = [wish for wish in missing if wish.met_by(now.after_reboot(wish.attribute))]
    if len(waiting) == len(missing):
        pending = ", ".join(f"{wish.attribute}={now.after_reboot(wish.attribute)}" for wish in waiting)
        return "mismatch", f"{WAITING}: {pending} is pending"
    bound = [wish for wish in missing if wish.bound_to]
    if len(bound) + len(waiting) == len(missing):
        name = bound[0].bound_to.partition("=")[0]
        if text_of(now.current.get(name)) != now.after_reboot(name):
            return (
                "mismatch",
                f"{WAITING}: {bound[0].attribute} follows {name}={now.after_reboot(name)}, which is pending",
            )
        return "unsupported", (
            f"{bound[0].attribute} can be set only with {bound[0].bound_to}; it follows {name}={now.after_reboot(name)}"
        )
    names = [wish.attribute for wish in missing]
    return "mismatch", f"asked {each.asked}, reads {joined(now.current, names)}{now.verdict(names)}"
