"""A server's BIOS settings brought into force and back: remember, make pending, restart where allowed, read back.

Promises: the values from before are on disk before the first attribute is changed; what is in force or pending already
is not written again; the machine is restarted only when that was allowed, and every wait is bounded. A note on disk says
that it is being restarted, so that whoever comes after a bench that was killed meanwhile switches it on.
Runs on the control node. Knows nothing of Ansible.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible.module_utils.bench_bmc.bios import (
    GRACEFUL_S_MAX,
    NO_SETTINGS,
    SETTINGS,
    VOLATILE,
    WAITING,
    Firmware,
    Plan,
    beside_of,
    holders,
    is_held,
    joined,
    plan,
    record_of,
    resolve_bonds,
    text_of,
    to_write,
)
from ansible.module_utils.bench_bmc.errors import BmcError, BmcSilentError
from ansible.module_utils.bench_bmc.first_values import FirstValues
from ansible.module_utils.bench_state import tuning_record

if TYPE_CHECKING:  # its libraries take longer to load than most runs without a BMC take
    from ansible.module_utils.bench_bmc.redfish import System

POLL_S = 3.0
ROUNDS_MAX = (
    4  # of restoring: in HPE's registry of the DL380a Gen11 one attribute waits for another that waits for the profile
)
NOTE = "restarting.json"  # of a machine that is being restarted: beside the values from before


@dataclass(frozen=True)
class Terms:
    """Under which conditions a run works."""

    restart: bool  # the machine may be restarted
    wait_s: float  # how long that may take until the attributes read back
    pretend: bool = False


@dataclass
class Run:
    """The findings and changes of one run."""

    records: list[dict[str, str]] = field(default_factory=list)
    changed: bool = False
    restarted: str = ""  # how, where the machine was restarted
    waiting: bool = False  # something is pending that a restart brings into force
    waited_s: float = 0.0
    power: str = ""  # on or off, where the BMC was asked for nothing else


def kept(setting: str, detail: str = "") -> dict[str, str]:
    """Return the record of a setting that nothing is asked of."""
    return tuning_record(
        "bios-" + setting.replace("_", "-"),
        role="bios",
        subject="firmware",
        asked="keep",
        status="unchanged",
        detail=detail,
    )


def without(asked: Mapping[str, str], reason: str) -> Run:
    """Describe a machine whose BIOS settings cannot be reached at all."""
    run = Run()
    for setting in SETTINGS:
        record = kept(setting, reason)
        if asked.get(setting, "keep") != "keep":
            record |= {"asked": asked[setting], "status": "unsupported"}
        run.records.append(record)
    return run


def vendor_key(vendors: dict[str, Any], wanted: str, manufacturer: str, where: str) -> str:
    """Return the key of the vendor named, or found by the system's Manufacturer."""
    if wanted:
        if wanted not in vendors:
            raise BmcError(f"bmc.vendor is {wanted}; known to the role bios: {', '.join(sorted(vendors))}")
        return wanted
    for key, data in vendors.items():
        if any(word in manufacturer.lower() for word in data["manufacturers"]):
            return key
    raise BmcError(
        f"{where}: its Manufacturer {manufacturer!r} is no known vendor; set bmc.vendor to one of"
        f" {', '.join(sorted(vendors))} (redfish: try the names of all)"
    )


def note_of(state: FirstValues) -> FirstValues:
    """Return the note that says that the machine is being restarted; empty where it is not."""
    return FirstValues(os.path.join(os.path.dirname(state.path), NOTE), state.subject)


def forget(note: FirstValues) -> None:
    """Remove the note: the machine is on."""
    note.values = {}
    note.save()


def recovered(system: System, note: FirstValues) -> dict[str, str]:
    """Switch on a machine that a killed bench had shut down, waiting out a shutdown that goes on; return the record of it."""
    since_s = float(note.values["since_s"])
    left_s = min(GRACEFUL_S_MAX, max(0.0, since_s + GRACEFUL_S_MAX - time.time()))
    was_off = system.switch_on_after(left_s)
    forget(note)
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since_s))
    what = "the server was off and was switched on" if was_off else "the server is on"
    return tuning_record(
        "server-power",
        role="bios",
        subject="server",
        asked="on",
        before="off" if was_off else "on",
        applied="on" if was_off else "",
        read_back="on",
        status="applied" if was_off else "unchanged",
        detail=f"{what}: a bench that did not live to see it had begun to restart it at {when}",
    )


class Control:
    """The BIOS settings of one server."""

    def __init__(
        self, system: System, state: FirstValues, vendors: dict[str, Any], key: str, note: FirstValues | None = None
    ) -> None:
        """Take the parts; reads nothing. The note stands beside the state."""
        self.system, self.state, self.vendors, self.key = system, state, vendors, key
        self.note = note or note_of(state)
        system.look_beside(beside_of(vendors, key))

    def _plans(self, asked: Mapping[str, str], firmware: Firmware) -> list[Plan]:
        plans = [
            plan(self.vendors, self.key, setting, asked[setting], firmware)
            for setting in SETTINGS
            if asked.get(setting, "keep") != "keep"
        ]
        resolve_bonds(plans, firmware)
        return plans

    def apply(self, asked: Mapping[str, str], terms: Terms) -> Run:
        """Bring what is asked into force, or make it pending."""
        firmware = self.system.firmware()
        if firmware is None:
            return without(asked, "the Redfish service shows no BIOS attributes (no Bios resource)")
        plans, before = self._plans(asked, firmware), dict(firmware.current)
        written = to_write(plans, firmware)
        if not firmware.settable and any(not self.system.is_at_once(name) for name in written):
            return without(asked, NO_SETTINGS)
        if terms.pretend:
            return self._pretend(asked, plans, firmware, written)
        refusals: dict[str, str] = {}
        if written:
            self._remember(firmware)
            refusals = self.system.set_attributes(self._with_pending(written, firmware))
            firmware = self._read()
        run = Run(changed=len(refusals) < len(written))
        self._describe(run, asked, plans, before, firmware, written, refusals)
        if run.waiting and terms.restart:
            firmware = self._restart(run, plans, terms)
            self._describe(run, asked, plans, before, firmware, written, refusals)
        return run

    def _with_pending(self, written: dict[str, str], firmware: Firmware) -> dict[str, str]:
        """Return what is to be set together: where a job holds what is pending already, it is deleted, and its values are set anew."""
        jobs = self.vendors[self.key].get("jobs", {})
        pending = {
            name: firmware.after_reboot(name)
            for name, value in firmware.current.items()
            if firmware.after_reboot(name) != text_of(value)
        }
        return {**pending, **written} if jobs and pending and self.system.clear_pending(jobs) else written

    def verify(self, asked: Mapping[str, str]) -> Run:
        """Read everything back; changes nothing."""
        firmware = self.system.firmware()
        if firmware is None:
            return without(asked, "the Redfish service shows no BIOS attributes (no Bios resource)")
        run, first = Run(), self._first()
        self._describe(run, asked, self._plans(asked, firmware), firmware.current, firmware, {}, {})
        for record in run.records:
            names = [name for name in record["subject"].split(" and ") if name in first]
            record["before"] = joined(first, names)
        return run

    def restore(self, terms: Terms) -> Run:
        """Put every attribute back that differs from before, whoever moved it; forget the values once all are in force.

        In rounds: first the profile and what the vendor's data names; then, after the restart, whatever still differs, as long as something
        goes back. A profile holds other attributes, and takes some along that it does not put back; these may hold others."""
        firmware, first = self._read(), self._first()
        before, refusals, run = dict(firmware.current), dict[str, str](), Run()
        if self._clears_pending(firmware, first, terms):
            firmware, run.changed = self._read(), True
        firmware = self._put_back_in_rounds(run, first, before, firmware, refusals, terms)
        detour = self._detour(run, first, firmware, terms)
        if detour and not self.system.set_attributes(detour):
            firmware = self._restart(run, [], terms, detour)
            firmware = self._put_back_in_rounds(run, first, before, firmware, refusals, terms)
        run.changed = run.changed or dict(firmware.current) != before
        left = self._left(first, firmware)
        if not terms.pretend and not run.waiting and all(name in firmware.fixed for name in left):
            self.state.values = {}
            self.state.save()
        return run

    def _put_back_in_rounds(
        self,
        run: Run,
        first: dict[str, str],
        before: Mapping[str, Any],
        firmware: Firmware,
        refusals: dict[str, str],
        terms: Terms,
    ) -> Firmware:
        """Put back as long as something differs and a restart may bring it into force; `refusals` is brought up to date.

        Some BIOSes take what others hold, restart, and drop it without a word (Lenovo's): the same once more gains nothing."""
        tried: dict[str, str] = {}
        for number in range(ROUNDS_MAX):
            differing = self._differing(first, firmware)
            if number and not run.waiting and differing in ({}, tried):
                break
            tried = differing
            if differing and terms.pretend:
                run.changed = True
            elif differing:
                refused, taken = self._put_back(differing, first)
                for name in differing:
                    refusals.pop(name, None)
                refusals.update(refused)
                run.changed = run.changed or taken > 0
                firmware = self._read()
            self._describe_restore(run, first, before, firmware, refusals, terms)
            if terms.pretend or (run.waiting and not terms.restart):
                break
            if run.waiting:
                held = self._held(first)
                awaited = {n: v for n, v in differing.items() if n not in held and n not in refusals}
                firmware = self._restart(run, [], terms, awaited)
                self._describe_restore(run, first, before, firmware, refusals, terms)
        return firmware

    def _left(self, first: Mapping[str, str], firmware: Firmware) -> list[str]:
        """Return the attributes that have changed."""
        return [n for n, v in first.items() if n in firmware.current and text_of(firmware.current[n]) != v]

    def _detour(self, run: Run, first: Mapping[str, str], firmware: Firmware, terms: Terms) -> dict[str, str]:
        """Return what to set so that attributes which the first profile holds at other values go back all the same: the profile that sets
        them free, and their values; the first profile follows afterwards. They were set before that profile was chosen."""
        left = {name: first[name] for name in self._left(first, firmware)}
        if not left or run.waiting or terms.pretend or not terms.restart:
            return {}
        known = holders(self.vendors, self.key, firmware.current)
        free = dict(holder.split("=", 1) for holder in known.values() if holder)
        free = {name: value for name, value in free.items() if name in first and first[name] != value}
        return {**free, **left} if free and all(name in firmware.fixed for name in left) else {}

    def _clears_pending(self, firmware: Firmware, first: Mapping[str, str], terms: Terms) -> bool:
        """Take back what a provision without a reboot left pending: as a job (iDRAC) it would keep anything else from being set, and come
        into force after the restore. Say whether that was done."""
        foreign = [
            name
            for name, value in first.items()
            if name in firmware.current
            and text_of(firmware.current[name]) != firmware.after_reboot(name)
            and firmware.after_reboot(name) != value
        ]
        if not foreign or terms.pretend:
            return False
        return self.system.clear_pending(self.vendors[self.key].get("jobs", {}))

    def _differing(self, first: Mapping[str, str], firmware: Firmware) -> dict[str, str]:
        """Return what is to be put back now; while a profile is still to go back, only what the vendor's data names."""
        known = holders(self.vendors, self.key, firmware.current)
        profiles = {holder.partition("=")[0] for holder in known.values() if holder}
        found = {
            name: value
            for name, value in first.items()
            if name in firmware.current
            and firmware.after_reboot(name) != value
            and (name in known or name not in firmware.fixed)
        }
        moving = any(
            name in found or text_of(firmware.current.get(name)) != firmware.after_reboot(name) for name in profiles
        )
        return {name: value for name, value in found.items() if name in known} if moving else found

    # -- parts

    def _read(self) -> Firmware:
        firmware = self.system.firmware()
        if firmware is None:
            raise BmcSilentError(
                f"{self.system.service.where}: the Bios resource is gone; run this again once the BMC is up"
            )
        return firmware

    def _first(self) -> dict[str, str]:
        return {name: text_of(value) for name, value in self.state.values.get("attributes", {}).items()}

    def _remember(self, firmware: Firmware) -> None:
        """Keep the first value of every attribute: a profile moves many, and no table lists them all."""
        attributes = self.state.values.setdefault("attributes", {})
        for name, value in firmware.current.items():
            if not VOLATILE.fullmatch(name) and name not in firmware.unkept and value is not None:
                attributes.setdefault(name, text_of(value))
        self.state.values.setdefault("vendor", self.key)
        self.state.save()

    def _put_back(self, differing: dict[str, str], first: dict[str, str]) -> tuple[dict[str, str], int]:
        """Write first values; return what was refused, and how many were taken. A value that a profile holds is tried on its own: if
        refused, it follows the profile, and nothing was changed."""
        held = self._held(first)
        free = {name: value for name, value in differing.items() if name not in held}
        # An attribute may be free only while an earlier one has the value of now: the last one goes back first.
        refusals = self.system.set_attributes({name: free[name] for name in reversed(free)}) if free else {}
        if refusals and len(refusals) < len(free):
            again = self.system.set_attributes({name: free[name] for name in free if name in refusals})
            refusals = {name: refusals[name] for name in again}
        taken = len(free) - len(refusals)
        for name in sorted(set(differing) & held):  # read back afterwards, whatever it says
            taken += not self.system.set_attributes({name: differing[name]})
        return refusals, taken

    def _held(self, first: dict[str, str]) -> set[str]:
        """Return the attributes that follow from another one's first value."""
        return {name for name, holder in holders(self.vendors, self.key, first).items() if is_held(holder, first)}

    def _restart(self, run: Run, plans: list[Plan], terms: Terms, first: dict[str, str] | None = None) -> Firmware:
        """Restart the machine and wait until the attributes read back, at most as long as the terms allow."""
        began = time.monotonic()
        deadline = began + terms.wait_s
        self.note.values = {"since_s": time.time()}
        self.note.save()
        run.restarted, run.changed = self.system.restart(min(GRACEFUL_S_MAX, terms.wait_s / 2)), True
        forget(self.note)
        self.system.forget_registry()
        while True:
            try:
                firmware = self._read()
                if time.monotonic() > deadline or not self._missing(plans, first or {}, firmware):
                    break
            except BmcSilentError:  # some restart with the machine
                if time.monotonic() > deadline:
                    raise
            time.sleep(POLL_S)
        run.waited_s = time.monotonic() - began
        return firmware

    @staticmethod
    def _missing(plans: list[Plan], first: dict[str, str], firmware: Firmware) -> bool:
        """Says whether something that was asked, or was there first, is not in force."""
        asked = any(
            not wish.met_by(text_of(firmware.current.get(wish.attribute)))
            for each in plans
            if not each.unsupported
            for wish in each.wishes
            if not wish.bound_to
        )
        return asked or any(text_of(firmware.current.get(name)) != value for name, value in first.items())

    # -- records

    def _describe(
        self,
        run: Run,
        asked: Mapping[str, str],
        plans: list[Plan],
        before: Mapping[str, Any],
        now: Firmware,
        written: Mapping[str, str],
        refusals: Mapping[str, str],
    ) -> None:
        by_setting = {each.setting: each for each in plans}
        run.records = [
            record_of(by_setting[setting], before, now, written, refusals, run.restarted)
            if setting in by_setting
            else kept(setting)
            for setting in SETTINGS
        ]
        self._note_waiting(run)

    def _pretend(
        self, asked: Mapping[str, str], plans: list[Plan], firmware: Firmware, written: Mapping[str, str]
    ) -> Run:
        run = Run(changed=bool(written))
        self._describe(run, asked, plans, firmware.current, firmware, {}, {})
        for record in run.records:
            names = [name for name in record["subject"].split(" and ") if name in written]
            if record["status"] == "mismatch" and names:
                record |= {"status": "applied", "detail": f"check mode: {joined(written, names)} would be made pending"}
        return run

    def _describe_restore(
        self,
        run: Run,
        first: dict[str, str],
        before: Mapping[str, Any],
        now: Firmware,
        refusals: Mapping[str, str],
        terms: Terms,
    ) -> None:
        run.records = []
        known = holders(self.vendors, self.key, {**first, **now.current})
        moving = {holder.partition("=")[0] for holder in known.values() if holder}
        follows = any(text_of(now.current.get(name)) != now.after_reboot(name) for name in moving)
        for name, value in first.items():
            current, later = text_of(now.current.get(name)), now.after_reboot(name)
            if name not in known and current == value == text_of(before.get(name)) == later:
                continue  # nobody has touched it
            status, detail = "unchanged", ""
            if name not in now.current:
                status, detail = "unsupported", "the BIOS does not have it any more"
            elif name in refusals:
                status, detail = "refused", refusals[name]
            elif current == value and later == value:
                moved = text_of(before.get(name)) != current
                status, detail = ("applied", run.restarted) if moved else ("unchanged", "")
            elif terms.pretend:
                status, detail = "applied", f"check mode: {value} would be made pending"
            elif later == value:
                status, detail = "mismatch", f"{WAITING}: {name}={value} is pending"
            elif name in now.fixed and name not in known:
                status, detail = "unsupported", f"read-only by the attribute registry: was {value}, reads {current}"
            elif follows:
                status, detail = (
                    "mismatch",
                    f"{WAITING}: the profile goes back first; then run restore again for {name}={value}",
                )
            else:
                status, detail = (
                    "mismatch",
                    f"was {value}, reads {current}"
                    + (f", {later} is pending" if later != current else now.verdict([name])),
                )
            run.records.append(
                tuning_record(
                    f"bios-{name}",
                    role="bios",
                    subject="BIOS attribute",
                    asked=value,
                    before=text_of(before.get(name)),
                    read_back=current,
                    status=status,
                    detail=detail,
                )
            )
        self._note_waiting(run)

    @staticmethod
    def _note_waiting(run: Run) -> None:
        run.waiting = any(record["detail"].startswith(WAITING) for record in run.records)
