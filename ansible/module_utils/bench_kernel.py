"""Kernel settings: plan, apply, read back, and describe each one as a record of facts/tuning.json.

Promises: a file is written only when it does not hold what was asked; the value it held is handed to
``remember`` (which puts it on disk) before the first write; what cannot be had is described, never raised.
Knows nothing of Ansible. Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

READ_LIMIT_BYTES = 4096  # a sysfs or procfs value never exceeds a page
FAULTS_NAMED_MAX = 5  # of 256 CPUs that misbehave alike, five names say enough

# A setting over many files is as good as its worst file.
WORST_FIRST = ("mismatch", "refused", "unsupported", "applied", "unchanged")


@dataclass(frozen=True)
class Setting:
    """One thing asked of the kernel; ``value`` None means: record it, ask nothing."""

    id: str
    subject: str
    paths: list[str]  # glob patterns, absolute
    value: str | None = None
    asked: str = ""  # how the request reads in the record
    at_least: bool = False  # compare as integers: a larger value also satisfies
    bracketed: bool = False  # the file lists all choices and brackets the chosen one
    choices_file: str = ""  # sibling file that lists the values this machine offers
    absent: str = ""  # the reason to record when no such file exists

    def satisfied_by(self, value: str) -> bool:
        """Whether a value read from the kernel is what was asked."""
        if self.value is None:
            return True
        if self.at_least:
            return value.lstrip("-").isdigit() and int(value) >= int(self.value)
        return value == self.value


@dataclass
class Outcome:
    """What happened to one file."""

    path: str
    before: str = ""
    applied: str = ""
    read_back: str = ""
    status: str = "unchanged"
    detail: str = ""
    planned: bool = False  # differs from what was asked, and can be written


def read_text(path: str) -> str:
    """Return at most one page of ``path``, stripped."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read(READ_LIMIT_BYTES).strip()


def read_value(path: str, bracketed: bool) -> str:
    """Return the value that ``path`` holds; of a bracketed list, the chosen one."""
    text = read_text(path)
    if not bracketed:
        return text
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text  # a queue with a single choice prints it bare


def write_value(path: str, value: str) -> None:
    """Write ``value`` in one system call, as the kernel wants it; OSError is the kernel's refusal."""
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
    outcome.status, outcome.detail = "mismatch", f"asked {setting.asked}, found {outcome.before or 'nothing'}"
    return outcome


def apply_one(setting: Setting, outcome: Outcome) -> None:
    """Write one planned file; the verdict on it falls when it is read back."""
    assert setting.value is not None  # nothing is planned where nothing is asked
    try:
        write_value(outcome.path, setting.value)
    except OSError as error:
        outcome.status, outcome.detail = "refused", f"the kernel refused {setting.value}: {reason_of(error)}"
        return
    outcome.applied = setting.value
    outcome.status, outcome.detail = "applied", ""


def read_back(setting: Setting, outcome: Outcome) -> None:
    """Read a file again after all writes, because one setting can move another."""
    if outcome.status == "unsupported":
        return
    outcome.read_back = read_value(outcome.path, setting.bracketed)
    moved = outcome.read_back != outcome.before
    if moved and outcome.status == "unchanged":
        outcome.status = "applied"
        outcome.detail = f"was {outcome.before}; moved when another setting was written"
    if outcome.status != "refused" and not setting.satisfied_by(outcome.read_back):
        outcome.status = "mismatch"
        outcome.detail = f"asked {setting.asked}, reads {outcome.read_back or 'nothing'}"


def expand(patterns: Iterable[str]) -> list[str]:
    """Return the files that the patterns name, each once, in a stable order."""
    return sorted({path for pattern in patterns for path in glob.glob(pattern)})


def summarise(values: Iterable[str]) -> str:
    """Return one text for the values of many files: the value, or each with its count."""
    counts = Counter(values)
    if len(counts) <= 1:
        return next(iter(counts), "")
    return ", ".join(f"{value or 'nothing'} x{count}" for value, count in sorted(counts.items()))


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
    if not outcomes:
        record.update(before="", applied="", read_back="", status="unsupported", detail=setting.absent)
        return record
    status = next(status for status in WORST_FIRST if any(o.status == status for o in outcomes))
    written = [outcome.applied for outcome in outcomes if outcome.applied]
    record.update(
        before=summarise(outcome.before for outcome in outcomes),
        applied=summarise(written),
        read_back=summarise(outcome.read_back for outcome in outcomes),
        status=status,
        detail=describe_faults(outcomes, status),
    )
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
    seen = [(setting, [inspect(setting, path) for path in expand(setting.paths)]) for setting in settings]
    planned = [(s, o) for s, outcomes in seen for o in outcomes if o.planned]
    if write and planned and pretend:
        for setting, outcome in planned:
            outcome.status, outcome.detail = "applied", f"check mode: {setting.value} would be written"
    elif write and planned:
        # Also what nothing is asked of: a queue's depth, for one, changes with its scheduler.
        for setting, outcomes in seen:
            remember(setting, [outcome for outcome in outcomes if outcome.status != "unsupported"])
        for setting, outcome in planned:
            apply_one(setting, outcome)
        for setting, outcomes in seen:
            for outcome in outcomes:
                read_back(setting, outcome)
    changed = any(outcome.read_back != outcome.before for _s, o in seen for outcome in o)
    would_change = bool(write and pretend and planned)
    return Run([record_of(role, setting, outcomes) for setting, outcomes in seen], changed or would_change)


def restore_values(role: str, setting_id: str, saved: dict[str, Any], pretend: bool) -> tuple[dict[str, str], bool]:
    """Put the remembered values of one setting back; return its record and whether anything changed."""
    bracketed, values = bool(saved["bracketed"]), saved["values"]
    outcomes = []
    for path, value in sorted(values.items()):
        single = Setting(setting_id, "", [path], value=value, asked=value or "nothing", bracketed=bracketed)
        if not os.path.exists(path):
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
