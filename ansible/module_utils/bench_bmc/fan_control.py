"""One server's fans at full speed and back: arm the guard, send, wait, read back, describe as records.

Promises: the mode from before is on disk, and the guard is armed, before full speed is asked for; what is in force
already is not sent again; each fan is read before and after, and one that stands still is named.
Knows nothing of Ansible. Runs on the candidate or on the control node: Python 3.9, standard library only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.bench_bmc.errors import BmcError
from ansible.module_utils.bench_bmc.fan_guard import GuardControl
from ansible.module_utils.bench_bmc.fans import Rpm, Vendor, as_bytes, fallen, settled, speeds, stopped
from ansible.module_utils.bench_bmc.first_values import FirstValues
from ansible.module_utils.bench_bmc.ipmi import CommandRefusedError, Ipmi
from ansible.module_utils.bench_state import tuning_record

PAUSE_S = 1.0


@dataclass(frozen=True)
class Asked:
    """The settings that one run asks for."""

    mode: str  # full, automatic, keep
    settle_s: float = 60.0
    lease_s: float = 14400.0


@dataclass
class Run:
    """The findings and changes of one run over the fans."""

    records: list[dict[str, str]] = field(default_factory=list)
    changed: bool = False

    def add(self, setting_id: str, subject: str, status: str, **fields: str) -> None:
        """Add a record of facts/tuning.json."""
        self.records.append(tuning_record(setting_id, role="fans", subject=subject, status=status, **fields))


def unsupported(asked: str, reason: str) -> Run:
    """Describe a machine whose fans cannot be reached or set at all."""
    run = Run()
    run.add("fan-mode", "all fans", "unsupported", asked=asked, detail=reason)
    return run


def vendor_of(ipmi: Ipmi, wanted: str, vendors: dict[str, Any]) -> Vendor:
    """Return the data for the vendor named, or found by the BMC's enterprise number."""
    if wanted:
        if wanted not in vendors:
            raise BmcError(f"bmc.vendor is {wanted}; known to the role fans: {', '.join(sorted(vendors))}")
        return Vendor(wanted, vendors[wanted])
    number = ipmi.manufacturer_id()
    for key, data in vendors.items():
        if number in data.get("manufacturer_ids", []):
            return Vendor(key, data)
    raise BmcError(
        f"BMC {ipmi.bmc.where}: its manufacturer ID {number} is of no known vendor;"
        f" set bmc.vendor to one of {', '.join(sorted(vendors))}, or leave fan_mode out"
    )


class Fans:
    """The fans of one server."""

    def __init__(self, ipmi: Ipmi, vendor: Vendor | None, state: FirstValues, guard: GuardControl) -> None:
        """Take the parts; sends nothing. No vendor: the speeds are read, the mode is nobody's business."""
        self.ipmi, self.vendor, self.state, self.guard = ipmi, vendor, state, guard

    # -- reading

    def mode(self) -> tuple[str, int]:
        """Return the mode's name and number; empty and -1 where the BMC cannot tell."""
        if self.vendor is None or not self.vendor.tells_mode:
            return "", -1
        try:
            answer = self.ipmi.raw(as_bytes(self.vendor.data["modes"]["read"]))
        except CommandRefusedError:
            return "", -1
        return (self.vendor.mode_name(answer[0]), answer[0]) if answer else ("", -1)

    def full_in_force(self, vendor: Vendor, mode: str, fans: Rpm) -> bool:
        """Says whether full speed is in force, by the mode where it can be read, else by the speeds reached last time."""
        if mode:
            return vendor.is_full(mode)
        reached: Rpm = self.state.values.get("full_rpm") or {}
        return bool(reached) and not fallen(reached, fans)

    @property
    def ours(self) -> bool:
        """Says whether the bench itself has asked for full speed, and not given it back."""
        return self.state.values.get("set") == "full"

    # -- writing

    def send(self, steps: list[dict[str, Any]]) -> str:
        """Send a sequence; return the BMC's refusal of a step that is not optional."""
        for step in steps:
            try:
                self.ipmi.raw(step["send"])
            except CommandRefusedError as error:
                if not step["optional"]:
                    return f"the BMC refused raw {' '.join(step['send'])}: {error}"
        return ""

    def remember(self, wanted: str, mode: str, number: int, fans: Rpm) -> None:
        """Put on disk what was there first, and what the bench asks for."""
        for name, value in (("mode", mode), ("mode_number", number), ("rpm", dict(fans))):
            self.state.values.setdefault(name, value)
        self.state.values["set"] = wanted
        self.state.save()

    def forget(self) -> None:
        """Drop the state: the fans are in their first mode again."""
        self.state.values = {}
        self.state.save()

    def steps_back(self, vendor: Vendor) -> list[dict[str, Any]]:
        """Return the sequence to what was before the first provision; automatic where that could not be read."""
        number = int(self.state.values.get("mode_number", -1))
        return vendor.steps_to(number) if number >= 0 and vendor.tells_mode else vendor.steps("automatic")

    def guard_steps(self, vendor: Vendor) -> list[dict[str, Any]]:
        """Return what the guard sends: the automatic mode from before, and never anything but automatic control."""
        before = str(self.state.values.get("mode", ""))
        return self.steps_back(vendor) if before and not vendor.is_full(before) else vendor.steps("automatic")

    def await_full(self, before: Rpm, settle_s: float) -> Rpm:
        """Return the speeds once each fan holds or exceeds its former one and none moves any more, or at the end."""
        deadline = time.monotonic() + settle_s
        last = self.ipmi.fans()
        while time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            now = self.ipmi.fans()
            # Where nothing has moved at all, the BMC may not have begun to act.
            if now != before and settled(last, now) and not fallen(before, now):
                return now
            last = now
        return last

    # -- the runs

    def apply(self, asked: Asked, pretend: bool) -> Run:
        """Bring the fans into the mode asked for."""
        before = self.ipmi.fans()
        mode, number = self.mode()
        if asked.mode == "keep":
            return self._kept(mode, before)
        if self.vendor is None:
            raise AssertionError("a mode is asked for, so the caller has found the vendor")
        if self.vendor.unsupported:
            return self._without_way(asked, before)
        if asked.mode == "automatic":
            return self._automatic(self.vendor, mode, number, before, pretend)
        return self._full(self.vendor, asked, mode, number, before, pretend)

    def _kept(self, mode: str, fans: Rpm) -> Run:
        run, text = Run(), speeds(fans)
        run.add("fan-mode", "all fans", "unchanged", asked="keep", before=mode, read_back=mode)
        run.add("fan-speed", "each fan", "unchanged", before=text, read_back=text, detail=still(fans))
        return run

    def _without_way(self, asked: Asked, fans: Rpm) -> Run:
        if self.vendor is None:
            raise AssertionError("no command for fans is sent to a BMC of no known vendor")
        run, text = unsupported(asked.mode, f"{self.vendor.key}: {self.vendor.unsupported}"), speeds(fans)
        run.add("fan-speed", "each fan", "unchanged", before=text, read_back=text, detail=still(fans))
        return run

    def _full(self, vendor: Vendor, asked: Asked, mode: str, number: int, before: Rpm, pretend: bool) -> Run:
        run = Run()
        in_force, guarded = self.full_in_force(vendor, mode, before), self.guard.status()["guard"]
        if in_force and not self.ours:
            run.add(
                "fan-mode", "all fans", "unchanged", asked="full", before=mode, read_back=mode,
                detail="at full speed before the bench came: nothing to give back, so no guard",
            )  # fmt: skip
            self._judge_speeds(run, before, before)
            return run
        if pretend:
            run.changed = not (in_force and guarded)
            run.add(
                "fan-mode", "all fans", "unchanged" if in_force else "applied", asked="full", before=mode,
                read_back=mode, detail="" if in_force else "check mode: full speed would be set, under a guard",
            )  # fmt: skip
            return run
        first = dict(self.state.values)
        self.remember("full", mode, number, before)
        armed = self.guard.arm(self.ipmi, self.guard_steps(vendor), asked.lease_s)
        run.changed = bool(armed["started"])
        now = before
        if in_force:
            run.add("fan-mode", "all fans", "unchanged", asked="full", before=mode, applied="", read_back=mode)
        else:
            run.changed = True
            refusal = self.send(vendor.steps("full"))
            if refusal:
                return self._refused(vendor, run, first, mode, before, refusal)
            now = self.await_full(before, asked.settle_s)
            mode_now = self.mode()[0]
            wrong = bool(mode_now) and not vendor.is_full(mode_now)
            run.add(
                "fan-mode", "all fans", "mismatch" if wrong else "applied", asked="full", before=mode, applied="full",
                read_back=mode_now or "full", detail=f"asked full, reads {mode_now}" if wrong
                else "" if mode_now else "the BMC cannot tell its mode: judged by the fans' speeds",
            )  # fmt: skip
            self.state.values["full_rpm"] = dict(now)
            self.state.save()
        self._judge_speeds(run, before, now)
        self._describe_guard(run, armed, restarted=in_force and bool(armed["started"]))
        return run

    def _refused(self, vendor: Vendor, run: Run, first: dict[str, Any], mode: str, before: Rpm, refusal: str) -> Run:
        """Undo what part of the sequence the BMC may have taken; end the guard only if that worked."""
        undone = self.send(self.guard_steps(vendor))
        if not undone:
            self.guard.release()
            self.state.values = first
            self.state.save()
        detail = f"{refusal}; {undone or 'given back to automatic control'}"
        hint = vendor.data.get("refused_hint", "")
        now = self.ipmi.fans()
        run.add(
            "fan-mode", "all fans", "refused", asked="full", before=mode, read_back=self.mode()[0],
            detail=f"{detail}. {hint}" if hint else detail,
        )  # fmt: skip
        run.add("fan-speed", "each fan", "unchanged", before=speeds(before), read_back=speeds(now), detail=still(now))
        return run

    def _automatic(self, vendor: Vendor, mode: str, number: int, before: Rpm, pretend: bool) -> Run:
        run, text = Run(), speeds(before)
        in_force = not vendor.is_full(mode) if mode else self.state.values.get("set") == "automatic"
        applied, status, detail = "", "unchanged", "" if mode else "the BMC cannot tell its mode"
        if not in_force and pretend:
            status, detail = "applied", "check mode: automatic control would be set"
        elif not in_force:
            self.remember("automatic", mode, number, before)
            refusal = self.send(vendor.steps("automatic"))
            applied, status = ("", "refused") if refusal else ("automatic", "applied")
            detail = refusal or detail
        mode_now = self.mode()[0]
        if status == "applied" and not pretend and mode_now and vendor.is_full(mode_now):
            status, detail = "mismatch", f"asked automatic, reads {mode_now}"
        if status in ("applied", "unchanged") and not pretend and self.guard.release():
            run.changed = True
        run.changed = run.changed or not in_force
        run.add(
            "fan-mode", "all fans", status, asked="automatic", before=mode, applied=applied,
            read_back=mode_now or ("automatic" if applied or in_force else ""), detail=detail,
        )  # fmt: skip
        now = before if pretend or in_force else self.ipmi.fans()
        run.add("fan-speed", "each fan", "unchanged", before=text, read_back=speeds(now), detail=still(now))
        return run

    def verify(self, asked: Asked) -> Run:
        """Read mode, speeds and guard; sends nothing."""
        fans = self.ipmi.fans()
        mode, _number = self.mode()
        if asked.mode == "keep":
            return self._kept(mode, fans)
        if self.vendor is None:
            raise AssertionError("no command for fans is sent to a BMC of no known vendor")
        if self.vendor.unsupported:
            return self._without_way(asked, fans)
        run, first = Run(), str(self.state.values.get("mode", ""))
        full = self.full_in_force(self.vendor, mode, fans)
        if not mode and asked.mode == "automatic":
            full = self.state.values.get("set") != "automatic"
        holds = full == (asked.mode == "full")
        shown = mode or ("full" if full else "not full")
        run.add(
            "fan-mode", "all fans", "unchanged" if holds else "mismatch", asked=asked.mode, before=first,
            read_back=shown, detail="" if holds else f"asked {asked.mode}, reads {shown}",
        )  # fmt: skip
        if asked.mode == "full":
            self._judge_speeds(run, self.state.values.get("full_rpm") or fans, fans)
        if asked.mode == "full" and self.ours:
            self._describe_guard(run, self.guard.status())
        return run

    def restore(self, pretend: bool) -> Run:
        """Put back the mode from before the first provision, then end the guard."""
        run = Run()
        if self.vendor is None:
            raise AssertionError("no command for fans is sent to a BMC of no known vendor")
        mode, number = self.mode()
        first, first_number = str(self.state.values.get("mode", "")), int(self.state.values.get("mode_number", -1))
        wanted = first or "automatic"
        if mode and number == first_number:
            run.add("fan-mode", "all fans", "unchanged", asked=wanted, before=mode, read_back=mode)
        elif pretend:
            run.changed = True
            run.add(
                "fan-mode", "all fans", "applied", asked=wanted, before=mode, read_back=mode,
                detail=f"check mode: {wanted} would be set",
            )  # fmt: skip
        else:
            run.changed = True
            refusal = self.send(self.steps_back(self.vendor))
            now, number = self.mode()
            wrong = f"asked {wanted}, reads {now}" if now and number != first_number else ""
            status = "refused" if refusal else "mismatch" if wrong else "applied"
            run.add(
                "fan-mode", "all fans", status, asked=wanted, before=mode, applied="" if refusal else wanted,
                read_back=now or ("" if refusal else wanted), detail=refusal or wrong,
            )  # fmt: skip
            if status != "applied":
                return run  # the guard stays: it will try, too
        if not pretend:
            run.changed = self.guard.release() or run.changed
            self.forget()
        return run

    # -- records

    def _judge_speeds(self, run: Run, before: Rpm, now: Rpm) -> None:
        faults = fallen(before, now) + [f"{name} stands still (0 RPM)" for name in stopped(now)]
        if not any(rpm is not None for rpm in now.values()):
            faults = ["the BMC shows no fan with a reading, so that full speed cannot be confirmed"]
        status = "mismatch" if faults else "unchanged" if now == before else "applied"
        run.add(
            "fan-speed", "each fan", status, asked="raised or held", before=speeds(before), read_back=speeds(now),
            detail="; ".join(faults),
        )  # fmt: skip

    def _describe_guard(self, run: Run, guard: dict[str, Any], restarted: bool = False) -> None:
        alive = bool(guard["guard"])
        status = "mismatch" if not alive else "applied" if guard.get("started") else "unchanged"
        lease = f"pid {guard['pid']}, lease ends in {guard['remaining_s']:.0f} s: {self.guard.lease}" if alive else ""
        detail = lease or "no guard is at work: it was killed, or gave the fans back; provision again"
        run.add(
            "fan-guard", "guard of the fans", status, asked="armed", before="", applied="armed" if restarted else "",
            read_back="armed" if alive else "none",
            detail=f"the guard was not at work any more (killed?) and was started again; {detail}" if restarted else detail,
        )  # fmt: skip


def still(fans: Rpm) -> str:
    """Say which fans stand still."""
    names = stopped(fans)
    return f"{', '.join(names)} stands still (0 RPM)" if names else ""
