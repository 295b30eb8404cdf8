"""The account of a wear experiment on one set of drives: bytes that it may write, has written, and has left.

Promise: bytes are reserved here, durably, before they are written, and settled afterwards against the drives' own
counters, so that an interruption of any kind (Ctrl-C, a killed bench, a power cut of either machine) never makes
bytes free that may have been written. The account lives on the control node; every state of it is also in the bundle."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.results import Counters, WearExperiment
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.workloads.plan import by_the_drives
from daq_bench.rig.base.bundle import now_utc, to_json

FOLDER = "endurance"


def ledger_file(state: Path, experiment: WearExperiment) -> Path:
    """Returns the account's file below a candidate's state folder on the control node."""
    return state / FOLDER / experiment.file_name


def held_elsewhere(file: Path, experiment: WearExperiment) -> Path | None:
    """The account of the same experiment on the same drives under another candidate's name: two would spend the budget twice."""
    states = file.parents[2]  # <states>/<candidate>/endurance/<account>
    found = [one for one in states.glob(f"*/{FOLDER}/*.json") if one.parent != file.parent]
    for one in sorted(found):
        theirs = (read_entries(one) or {}).get("experiment", {})
        if (theirs.get("serials"), theirs.get("scenario")) == (list(experiment.serials), experiment.scenario):
            return one
    return None


def read_entries(file: Path) -> dict[str, Any] | None:
    """Returns an account's document, None when there is none. Raises BenchError for a damaged one: its budget is unknown."""
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        spent_bytes(document)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(
            f"{file}: the account of a write budget cannot be read ({error!r}), so that what is left of the budget is unknown. "
            "Put back the copy in the last run's bundle, results/*_ledger.json"
        ) from None
    return document


def spent_bytes(document: dict[str, Any]) -> int:
    """Returns the bytes that count as written: the charges of settled entries and the whole reservation of an open one."""
    return sum(
        entry["reserved_bytes"] if entry["charged_bytes"] is None else entry["charged_bytes"]
        for entry in document["entries"]
    )


class WearLedger:
    """One experiment's account, open for this run. `copies`: where each state of it goes besides its own file; `clock`: the time, UTC."""

    def __init__(
        self,
        file: Path,
        experiment: WearExperiment,
        budget_bytes: int,
        run: str,
        copies: Sequence[Path],
        clock: Callable[[], str] = now_utc,
    ) -> None:
        self._file, self._copies, self._run, self._clock = file, tuple(copies), run, clock
        document = read_entries(file)
        self.continued = document is not None and bool(document["entries"])
        self.document: dict[str, Any] = document or {
            "schema_version": 1,
            "experiment": as_document(experiment),
            "opened_utc": clock(),
            "opening": None,
            "entries": [],
        }
        self.document["write_budget_bytes"] = budget_bytes
        self.spent_before_bytes = self.spent_bytes

    @property
    def entries(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.document["entries"]
        return entries

    @property
    def spent_bytes(self) -> int:
        return spent_bytes(self.document)

    @property
    def left_bytes(self) -> int:
        """Returns the bytes left; negative when more was written than allowed, as when somebody else writes to the drive."""
        budget: int = self.document["write_budget_bytes"]
        return budget - self.spent_bytes

    def account(self) -> dict[str, Any]:
        """The account as a workload's result repeats it."""
        return {
            **{key: self.document[key] for key in ("experiment", "write_budget_bytes")},
            **{key: getattr(self, key) for key in ("spent_before_bytes", "spent_bytes", "left_bytes")},
            "ledger": self.entries,
        }

    def open_with(self, epoch: str, drives: list[dict[str, Any]]) -> None:
        """Notes the drives' state before the experiment's first byte, from which wear counts; a later run leaves it as it is."""
        if self.document["opening"] is None:
            self.document["opening"] = {"epoch": epoch, "drives": drives}
            self.save()

    def reserve(self, kind: str, asked_bytes: int, reserved_bytes: int, before: Counters) -> dict[str, Any]:
        """Adds an entry, which is on disk when this returns. Raises BenchError, and reserves nothing, when it exceeds what is left."""
        if reserved_bytes > self.left_bytes:
            raise BenchError(f"{reserved_bytes} B do not fit the {self.left_bytes} B that are left of the write budget")
        if self.open_entry() is not None:
            raise BenchError("a step is reserved and not settled")
        entry = {
            "run": self._run,
            "number": len(self.entries) + 1,
            "kind": kind,
            "reserved_utc": self._clock(),
            "asked_bytes": asked_bytes,
            "reserved_bytes": reserved_bytes,
            "before": as_document(before),
            "settled_utc": None,
            "after": None,
            "counted_bytes": None,
            "charged_bytes": None,
            "charged_by": None,
        }
        self.entries.append(entry)
        self.save()
        return entry

    def open_entry(self) -> dict[str, Any] | None:
        return next((entry for entry in self.entries if entry["charged_bytes"] is None), None)

    def settle(self, entry: dict[str, Any], written_bytes: int, after: Counters) -> None:
        """Charges the drives' count, or the written bytes if these are more; the reservation where no count exists."""
        counted = by_the_drives({**entry, "after": as_document(after)})
        charged = entry["reserved_bytes"] if counted is None else max(counted, written_bytes)
        by = "reservation" if counted is None else "drives" if counted >= written_bytes else "tool"
        self._close(entry, counted, charged, by, after)

    def settle_interrupted(self, entry: dict[str, Any], after: Counters | None) -> None:
        """Settles a step whose end nobody saw: charges the drives' count since, at most its reservation (others may have written
        since then), and all of it where they cannot tell."""
        counted = by_the_drives({**entry, "after": as_document(after) if after else None})
        charged = entry["reserved_bytes"] if counted is None else min(counted, entry["reserved_bytes"])
        self._close(entry, counted, charged, "reservation" if counted is None else "drives", after)

    def _close(self, entry: dict[str, Any], counted: int | None, charged: int, by: str, after: Counters | None) -> None:
        entry |= {
            "settled_utc": self._clock(),
            "after": as_document(after) if after else None,
            "counted_bytes": counted,
            "charged_bytes": charged,
            "charged_by": by,
        }
        self.save()

    def save(self) -> None:
        """Saves the account's own file first: a copy never knows of bytes that the account does not."""
        for path in (self._file, *self._copies):
            write_durably(path, to_json(self.document))


def _knowledge(account: dict[str, Any]) -> tuple[int, int]:
    """Returns the numbers of entries and of settled ones: entries are only added, then settled, so that more of both is later.

    Bytes do not serve: an entry that is still reserved counts for more than the same one settled."""
    entries = account["entries"]
    return len(entries), sum(entry["charged_bytes"] is not None for entry in entries)


def adopt(file: Path, copy: Path, experiment: WearExperiment) -> bool:
    """Takes the account of a bundle where the control node's own is missing or knows less; True when it did."""
    theirs, ours = read_entries(copy), read_entries(file)
    if theirs is None or theirs["experiment"]["serials"] != list(experiment.serials):
        return False
    if theirs["experiment"]["scenario"] != experiment.scenario:
        return False
    if ours is not None and _knowledge(ours) >= _knowledge(theirs):
        return False
    write_durably(file, to_json(theirs))
    return True


def write_durably(path: Path, text: str) -> None:
    """Writes as whole as an atomic replacement does, and on the disk before it returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        os.fsync(file.fileno())
    Path(name).replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
