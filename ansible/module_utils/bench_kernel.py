"""Kernel settings: plan, apply, read back, and describe each one as a record of facts/tuning.json.

Promises: a file is written only when it does not hold what was asked; the value it held is handed to
``remember`` (which puts it on disk) before the first write; what cannot be had is described, never raised.
Knows nothing of Ansible. Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import errno
import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ansible.module_utils import bench_systemd
from ansible.module_utils.bench_cpus import format_cpus, parse_cpus

READ_LIMIT_BYTES = 4096  # a sysfs or procfs value never exceeds a page
FAULTS_NAMED_MAX = 5  # of 256 CPUs that misbehave alike, five names say enough

# A setting over many files is as good as its worst file.
WORST_FIRST = ("mismatch", "refused", "unsupported", "applied", "unchanged")


@dataclass(frozen=True)
class Setting:
    """One thing asked of the kernel; ``value`` None means: record it, ask nothing."""

    id: str
    subject: str
    paths: list[str]  # glob patterns, absolute; or addresses of bench_systemd
    value: str | None = None
    asked: str = ""  # how the request reads in the record
    at_least: bool = False  # compare as integers: a larger value also satisfies
    cpus_within: bool = False  # compare as lists of CPUs: any part of those asked also satisfies
    effective_file: str = ""  # sibling file with what the kernel made of the value
    only_above: int | None = None  # leave out files whose sibling `only_above_file` holds no larger integer
    only_above_file: str = ""
    bracketed: bool = False  # the file lists all choices and brackets the chosen one
    choices_file: str = ""  # sibling file that lists the values this machine offers
    absent: str = ""  # the reason to record when no such file exists

    def satisfied_by(self, value: str) -> bool:
        """Says whether a value read from the kernel is what was asked."""
        if self.value is None:
            return True
        if self.at_least:
            return value.lstrip("-").isdigit() and int(value) >= int(self.value)
        if self.cpus_within:
            return bool(value) and parse_cpus(value) <= parse_cpus(self.value)
        return value == self.value

    def effective(self, path: str) -> str:
        """Returns the value as the kernel applied it; empty where the kernel does not tell."""
        sibling = os.path.join(os.path.dirname(path), self.effective_file)
        return read_text(sibling) if self.effective_file and os.path.exists(sibling) else ""


@dataclass
class Outcome:
    """The result for one file."""

    path: str
    before: str = ""
    applied: str = ""
    read_back: str = ""
    status: str = "unchanged"
    detail: str = ""
    planned: bool = False  # differs from what was asked, and can be written
    satisfied_in_effect: bool = False  # the kernel's own choice is as asked, though the value is not


def read_text(path: str) -> str:
    """Return at most one page of ``path``, stripped."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read(READ_LIMIT_BYTES).strip()


def read_value(path: str, bracketed: bool) -> str:
    """Return the value that ``path`` holds, or the chosen one of a bracketed list."""
    if bench_systemd.is_address(path):
        return bench_systemd.read(path)
    text = read_text(path)
    if not bracketed:
        return text
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text  # a queue with a single choice prints it bare


def write_value(path: str, value: str) -> None:
    """Write ``value`` in one system call, as the kernel wants it; OSError is the kernel's refusal."""
    if bench_systemd.is_address(path):
        bench_systemd.write(path, value)
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def offered_values(setting: Setting, path: str) -> list[str] | None:
    """Return the values the machine offers for ``path``, or None where it does not say."""
    if setting.bracketed:
        words = read_text(path).split()
        return [word.strip("[]") for word in words]
    if setting.choices_file:
        choices = os.path.join(os.path.dirname(path), setting.choices_file)
        if os.path.exists(choices):
            return read_text(choices).split()
    return None


def reason_of(error: OSError) -> str:
    """Name the kernel's reason, with the remedy where it is a matter of permission."""
    text = error.strerror or str(error)
    if isinstance(error, PermissionError) and os.geteuid() != 0:
        return f"{text} (not root: set bench_become: true for this host)"
    return text


def inspect(setting: Setting, path: str, ask_offer: bool = True) -> Outcome:
    """Read one file and decide what is to be done with it; writes nothing."""
    outcome = Outcome(path)
    try:
        outcome.before = outcome.read_back = read_value(path, setting.bracketed)
        offered = offered_values(setting, path) if ask_offer else None
    except OSError as error:
        outcome.status, outcome.detail = "unsupported", f"cannot be read: {reason_of(error)}"
        return outcome
    if setting.satisfied_by(outcome.before):
        return outcome
    if offered is not None and setting.value not in offered:
        outcome.status = "unsupported"
        outcome.detail = f"{setting.value} is not offered (offered: {', '.join(offered) or 'nothing'})"
        return outcome
    outcome.planned = True
    outcome.satisfied_in_effect = lies_within(setting, path)
    outcome.status, outcome.detail = "mismatch", f"asked {setting.asked}, found {outcome.before or 'nothing'}"
    return outcome


def lies_within(setting: Setting, path: str) -> bool:
    """Says whether the kernel's own choice is among the CPUs asked for, whatever the value allows it."""
    effective = setting.effective(path) if setting.cpus_within else ""
    return bool(effective) and setting.satisfied_by(effective)


def accept_effect(outcome: Outcome, reason: str) -> None:
    """Take what is so in effect for what was asked: interrupts that the kernel manages cannot be moved."""
    if outcome.satisfied_in_effect:
        outcome.status, outcome.detail = "unchanged", f"lies on the CPUs asked for; {reason}"


def apply_one(setting: Setting, outcome: Outcome) -> None:
    """Write one planned file; the verdict on it falls when it is read back."""
    if setting.value is None:
        raise AssertionError("nothing is planned where nothing is asked")
    try:
        write_value(outcome.path, setting.value)
    except OSError as error:
        outcome.status, outcome.detail = "refused", f"the kernel refused {setting.value}: {reason_of(error)}"
        full = error.errno == errno.ENOSPC
        if setting.cpus_within and full:
            outcome.detail += f" (no interrupt vector is left on CPUs {setting.value}: name more CPUs, or fewer queues)"
        elif setting.cpus_within:
            outcome.detail += f" (managed: it stays with its queue's CPU; a writer on CPUs {setting.value} avoids it)"
        accept_effect(
            outcome, "no vector is left there" if full else "the kernel manages it and does not let it be moved"
        )
        return
    outcome.applied = setting.value
    outcome.status, outcome.detail = "applied", ""


def moved_away(setting: Setting, outcome: Outcome) -> bool:
    """Says whether a setting that was as asked is so no longer, since another one was written before it."""
    if outcome.status != "unchanged" or setting.value is None:
        return False
    return not setting.satisfied_by(read_value(outcome.path, setting.bracketed))


def read_back(setting: Setting, outcome: Outcome) -> None:
    """Read a file again after all writes, because one setting can move another."""
    if outcome.status == "unsupported":
        return
    outcome.read_back = read_value(outcome.path, setting.bracketed)
    moved = outcome.read_back != outcome.before
    if moved and outcome.status == "unchanged":
        outcome.status = "applied"
        outcome.detail = f"was {outcome.before}; moved when another setting was written"
    if outcome.status == "refused" or setting.satisfied_by(outcome.read_back):
        return
    if outcome.applied or not outcome.satisfied_in_effect:
        outcome.status = "mismatch"
        outcome.detail = f"asked {setting.asked}, reads {outcome.read_back or 'nothing'}"


def expand(patterns: Iterable[str]) -> list[str]:
    """Return the files that the patterns name, each once, in a stable order."""
    found: set[str] = set()
    for pattern in patterns:
        if bench_systemd.is_address(pattern):
            found.update([pattern] if bench_systemd.exists(pattern) else [])
        else:
            found.update(glob.glob(pattern))
    return sorted(found)


def concerned(setting: Setting, paths: list[str]) -> list[str]:
    """Leave out the files that the setting's bound does not concern."""
    if setting.only_above is None:
        return paths
    found = []
    for path in paths:
        value = read_text(os.path.join(os.path.dirname(path), setting.only_above_file))
        if value.isdigit() and int(value) > setting.only_above:
            found.append(path)
    return found


def summarise(values: Iterable[str]) -> str:
    """Return one text for the values of many files: the value, or each with its count."""
    counts = Counter(values)
    if len(counts) <= 1:
        return next(iter(counts), "")
    return ", ".join(f"{value or 'nothing'} x{count}" for value, count in sorted(counts.items()))


def union(lists: Iterable[str]) -> str:
    """Return one list of CPUs for many: hundreds of interrupts make one short text."""
    return format_cpus({cpu for text in lists for cpu in parse_cpus(text)})


def describe_faults(outcomes: list[Outcome], status: str) -> str:
    """Say where the given status arose, naming a few files and counting the rest."""
    faults = [outcome for outcome in outcomes if outcome.status == status and outcome.detail]
    reasons = Counter(outcome.detail for outcome in faults)
    if len(reasons) == 1 and len(faults) == len(outcomes):
        return next(iter(reasons))
    texts = [f"{outcome.path}: {outcome.detail}" for outcome in faults[:FAULTS_NAMED_MAX]]
    if len(faults) > FAULTS_NAMED_MAX:
        texts.append(f"and {len(faults) - FAULTS_NAMED_MAX} more")
    return "; ".join(texts)


def record_of(role: str, setting: Setting, outcomes: list[Outcome]) -> dict[str, str]:
    """Return the record of facts/tuning.json for one setting over all its files."""
    record = {"id": setting.id, "role": role, "subject": setting.subject, "asked": setting.asked}
    if not outcomes and setting.only_above is not None and expand(setting.paths):
        detail = f"none has a {setting.only_above_file} above {setting.only_above}, so there is nothing to set"
        record.update(before="", applied="", read_back="none", status="unchanged", detail=detail)
        return record
    if not outcomes:
        record.update(before="", applied="", read_back="", status="unsupported", detail=setting.absent)
        return record
    status = next(status for status in WORST_FIRST if any(o.status == status for o in outcomes))
    written = [outcome.applied for outcome in outcomes if outcome.applied]
    together = union if setting.cpus_within else summarise
    record.update(
        before=together(outcome.before for outcome in outcomes),
        applied=together(written),
        read_back=together(outcome.read_back for outcome in outcomes),
        status=status,
        detail=describe_faults(outcomes, status),
    )
    effective = union(setting.effective(outcome.path) for outcome in outcomes)
    if effective:
        record["detail"] = "; ".join(filter(None, (record["detail"], f"in effect on CPU {effective}")))
    return record


@dataclass
class Run:
    """The outcome of one pass over a role's settings."""

    records: list[dict[str, str]]
    changed: bool


def run_settings(
    role: str,
    settings: list[Setting],
    remember: Callable[[Setting, list[Outcome]], None],
    write: bool,
    pretend: bool = False,
) -> Run:
    """Look at every setting, then (``write``) apply what differs, then read all of them back.

    All are read before the first is written: a CPU's governor, for one, moves its energy preference.
    ``pretend`` (check mode) reports what would be written and writes nothing.
    """
    seen = [(s, [inspect(s, path) for path in concerned(s, expand(s.paths))]) for s in settings]
    planned = [(s, o) for s, outcomes in seen for o in outcomes if o.planned]
    if write and planned and pretend:
        for setting, outcome in planned:
            outcome.status, outcome.detail = "applied", f"check mode: {setting.value} would be written"
    elif write and planned:
        # Also what nothing is asked of: a queue's depth, for one, changes with its scheduler.
        for setting, outcomes in seen:
            remember(setting, [outcome for outcome in outcomes if outcome.status != "unsupported"])
        for setting, outcomes in seen:
            for outcome in outcomes:
                if outcome.planned or moved_away(setting, outcome):
                    apply_one(setting, outcome)
        for setting, outcomes in seen:
            for outcome in outcomes:
                read_back(setting, outcome)
    elif not write:
        for _setting, outcome in planned:
            accept_effect(outcome, "its affinity would allow others")
    changed = any(outcome.read_back != outcome.before for _s, o in seen for outcome in o)
    would_change = bool(write and pretend and planned)
    return Run([record_of(role, setting, outcomes) for setting, outcomes in seen], changed or would_change)


def restore_values(role: str, setting_id: str, saved: dict[str, Any], pretend: bool) -> tuple[dict[str, str], bool]:
    """Put the remembered values of one setting back; return its record and whether anything changed."""
    bracketed, values = bool(saved["bracketed"]), saved["values"]
    outcomes = []
    for path, value in sorted(values.items()):
        single = Setting(setting_id, "", [path], value=value, asked=value or "nothing", bracketed=bracketed)
        if not bench_systemd.is_address(path) and not os.path.exists(path):
            outcomes.append(Outcome(path, status="unsupported", detail="no longer exists"))
            continue
        outcome = inspect(single, path, ask_offer=False)  # it was in force once: the kernel itself shall refuse it
        if outcome.planned and pretend:
            outcome.status, outcome.detail = "applied", f"check mode: {value} would be written"
        elif outcome.planned:
            apply_one(single, outcome)
            read_back(single, outcome)
        elif outcome.status == "unsupported":
            outcome.status = "refused"  # it held this value once: not to have it back is a failure
        outcomes.append(outcome)
    whole = Setting(setting_id, saved["subject"], [], asked=summarise(values.values()))
    return record_of(role, whole, outcomes), any(o.planned and o.status == "applied" for o in outcomes)
