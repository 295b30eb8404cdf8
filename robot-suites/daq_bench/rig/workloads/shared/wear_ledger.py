"""The account of a wear experiment on one set of drives: bytes that it may write, has written, and has left.

Promise: bytes are reserved here, durably, before they are written, and settled afterwards against the drives' own
counters, so that an interruption of any kind (Ctrl-C, a killed bench, a power cut of either machine) never makes
bytes free that may have been written. The account lives on the control node; every state of it is also in the bundle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.bench_model.documents.results import Counters, WearAccount, WearEntry, WearExperiment, WearKind
from daq_bench.bench_model.documents.struct import as_document, decoder
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
        if (account := read_account(one)) and _is_of(account, experiment):
            return one
    return None


def _is_of(account: WearAccount, experiment: WearExperiment) -> bool:
    theirs = account.experiment
    return (theirs.serials, theirs.scenario) == (experiment.serials, experiment.scenario)


def read_account(file: Path) -> WearAccount | None:
    """Returns an account, None when there is none. Raises BenchError for a damaged one: its budget is unknown."""
    try:
        return decoder(WearAccount).decode(file.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise BenchError(
            f"{file}: the account of a write budget cannot be read ({error!r}), so that what is left of the budget is unknown. "
            "Put back the copy in the last run's bundle, results/*_ledger.json"
        ) from None


def write_account(file: Path, account: WearAccount) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, to_json(as_document(account)), durable=True)


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
        found = read_account(file)
        self.continued = found is not None and bool(found.entries)
        self.account = replace(
            found or WearAccount(1, experiment, clock(), None, [], budget_bytes), write_budget_bytes=budget_bytes
        )
        self.spent_before_bytes = self.spent_bytes

    @property
    def entries(self) -> list[WearEntry]:
        return self.account.entries

    @property
    def spent_bytes(self) -> int:
        return self.account.spent_bytes

    @property
    def left_bytes(self) -> int:
        """Returns the bytes left; negative when more was written than allowed, as when somebody else writes to the drive."""
        return self.account.write_budget_bytes - self.spent_bytes

    def repeated(self) -> dict[str, Any]:
        """The account as a workload's result repeats it."""
        account = as_document(self.account)
        return {
            **{key: account[key] for key in ("experiment", "write_budget_bytes")},
            **{key: getattr(self, key) for key in ("spent_before_bytes", "spent_bytes", "left_bytes")},
            "ledger": account["entries"],
        }

    def open_with(self, epoch: str, drives: list[dict[str, Any]]) -> None:
        """Notes the drives' state before the experiment's first byte, from which wear counts; a later run leaves it as it is."""
        if self.account.opening is None:
            self.account = replace(self.account, opening={"epoch": epoch, "drives": drives})
            self.save()

    def reserve(self, kind: WearKind, asked_bytes: int, reserved_bytes: int, before: Counters) -> WearEntry:
        """Adds an entry, which is on disk when this returns. Raises BenchError, and reserves nothing, when it exceeds what is left."""
        if reserved_bytes > self.left_bytes:
            raise BenchError(f"{reserved_bytes} B do not fit the {self.left_bytes} B that are left of the write budget")
        if self.open_entry() is not None:
            raise BenchError("a step is reserved and not settled")
        unsettled = dict.fromkeys(("settled_utc", "after", "counted_bytes", "charged_bytes", "charged_by"))
        entry = WearEntry(
            run=self._run,
            number=len(self.entries) + 1,
            kind=kind,
            reserved_utc=self._clock(),
            asked_bytes=asked_bytes,
            reserved_bytes=reserved_bytes,
            before=before,
            **unsettled,
        )
        self.entries.append(entry)
        self.save()
        return entry

    def open_entry(self) -> WearEntry | None:
        return next((entry for entry in self.entries if entry.charged_bytes is None), None)

    def settle(self, entry: WearEntry, written_bytes: int, after: Counters) -> WearEntry:
        """Charges the drives' count, or the written bytes if these are more; the reservation where no count exists."""
        entry = _counted(entry, after)
        if entry.counted_bytes is None:
            return self._close(entry, entry.reserved_bytes, "reservation")
        if entry.counted_bytes < written_bytes:
            return self._close(entry, written_bytes, "tool")
        return self._close(entry, entry.counted_bytes, "drives")

    def settle_interrupted(self, entry: WearEntry, after: Counters | None) -> WearEntry:
        """Settles a step whose end nobody saw: charges the drives' count since, at most its reservation (others may have written
        since then), and all of it where they cannot tell."""
        entry = _counted(entry, after)
        if entry.counted_bytes is None:
            return self._close(entry, entry.reserved_bytes, "reservation")
        return self._close(entry, min(entry.counted_bytes, entry.reserved_bytes), "drives")

    def _close(self, entry: WearEntry, charged: int, by: Literal["drives", "tool", "reservation"]) -> WearEntry:
        settled = replace(entry, settled_utc=self._clock(), charged_bytes=charged, charged_by=by)
        self.entries[entry.number - 1] = settled
        self.save()
        return settled

    def save(self) -> None:
        """Saves the account's own file first: a copy never knows of bytes that the account does not."""
        for path in (self._file, *self._copies):
            write_account(path, self.account)


def _counted(entry: WearEntry, after: Counters | None) -> WearEntry:
    """The entry with the drives' counts after it, and what they count between its two readings."""
    read = replace(entry, after=after)
    return replace(read, counted_bytes=by_the_drives(as_document(read)))


def _knowledge(account: WearAccount) -> tuple[int, int]:
    """Returns the numbers of entries and of settled ones: entries are only added, then settled, so that more of both is later.

    Bytes do not serve: an entry that is still reserved counts for more than the same one settled."""
    return len(account.entries), sum(entry.charged_bytes is not None for entry in account.entries)


def adopt(file: Path, copy: Path, experiment: WearExperiment) -> bool:
    """Takes the account of a bundle where the control node's own is missing or knows less; True when it did."""
    theirs, ours = read_account(copy), read_account(file)
    if theirs is None or not _is_of(theirs, experiment):
        return False
    if ours is not None and _knowledge(ours) >= _knowledge(theirs):
        return False
    write_account(file, theirs)
    return True
