"""The account of a wear experiment: what is reserved is never free again unless a drive's own count says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.results import Counters, WearExperiment
from daq_bench.rig.workloads.shared.wear_ledger import WearLedger, adopt, held_elsewhere, ledger_file, read_account

EXPERIMENT = WearExperiment("server", "endurance", "nvme", ("S1",))
BUDGET = 1000


def counted(value: int, epoch: str = "drives' own") -> Counters:
    return Counters(epoch, {"S1": value})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return ledger_file(tmp_path / "state", EXPERIMENT)


def opened(file: Path, copies: list[Path] | None = None, budget: int = BUDGET) -> WearLedger:
    return WearLedger(file, EXPERIMENT, budget, "run-1", copies or [])


def test_a_step_is_charged_what_the_drive_counted_or_what_was_written_if_that_is_more(file: Path) -> None:
    ledger = opened(file)
    ledger.settle(ledger.reserve("mix", 100, 110, counted(5000)), 100, counted(5107))
    assert (ledger.spent_bytes, ledger.left_bytes) == (107, 893)
    ledger.settle(ledger.reserve("mix", 100, 110, counted(5107)), 100, counted(5190))
    assert ledger.spent_bytes == 207
    assert [entry.charged_by for entry in ledger.entries] == ["drives", "tool"]


def test_more_than_is_left_cannot_be_reserved(file: Path) -> None:
    ledger = opened(file)
    ledger.settle(ledger.reserve("mix", 900, 950, counted(0)), 900, counted(940))
    with pytest.raises(BenchError, match="61 B do not fit the 60 B that are left"):
        ledger.reserve("mix", 55, 61, counted(940))
    assert ledger.spent_bytes == 940


def test_a_reservation_counts_as_spent_until_it_is_settled_also_for_the_next_run(file: Path) -> None:
    opened(file).reserve("mix", 100, 110, counted(0))
    again = opened(file)
    assert again.continued
    assert again.left_bytes == BUDGET - 110
    with pytest.raises(BenchError, match="reserved and not settled"):
        again.reserve("mix", 1, 1, counted(0))


@pytest.mark.parametrize(
    ("after", "charged", "by"),
    [
        (counted(40), 40, "drives"),
        (counted(5000), 110, "drives"),  # somebody wrote since then: not this step's, which had only its reservation
        (counted(0, "another boot"), 110, "reservation"),
        (counted(-1), 110, "reservation"),  # a count that began again
        (Counters("drives' own", {"S2": 40}), 110, "reservation"),
        (None, 110, "reservation"),
    ],
)
def test_an_interrupted_step_is_charged_what_it_can_have_written(
    file: Path, after: Counters | None, charged: int, by: str
) -> None:
    opened(file).reserve("mix", 100, 110, counted(0))
    again = opened(file)
    entry = again.open_entry()
    assert entry is not None
    entry = again.settle_interrupted(entry, after)
    assert (entry.charged_bytes, entry.charged_by) == (charged, by)
    assert again.left_bytes == BUDGET - charged


def test_writing_by_others_is_charged_and_shows_as_an_overrun(file: Path) -> None:
    ledger = opened(file)
    ledger.settle(ledger.reserve("mix", 900, 950, counted(0)), 900, counted(1200))
    assert ledger.left_bytes == -200


def test_a_killed_process_leaves_its_reservation(tmp_path: Path, file: Path) -> None:
    """SIGKILL right after the reservation: what is on disk is what the next run reads."""
    code = (
        "import os, signal\nfrom pathlib import Path\n"
        "from daq_bench.bench_model.documents.results import Counters, WearExperiment\n"
        "from daq_bench.rig.workloads.shared.wear_ledger import WearLedger\n"
        f"ledger = WearLedger(Path({str(file)!r}), WearExperiment('server', 'endurance', 'nvme', ('S1',)), 1000, 'run-1', [])\n"
        "ledger.reserve('mix', 600, 610, Counters('e', {'S1': 0}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert opened(file).left_bytes == 390


def test_every_state_is_in_the_copies_too(tmp_path: Path, file: Path) -> None:
    copy = tmp_path / "bundle" / "results" / "endurance_ledger.json"
    ledger = opened(file, [copy])
    ledger.reserve("mix", 100, 110, counted(0))
    assert json.loads(copy.read_text(encoding="utf-8")) == json.loads(file.read_text(encoding="utf-8"))


def test_a_lost_account_is_taken_from_a_bundle_and_one_that_knows_more_is_kept(tmp_path: Path, file: Path) -> None:
    copy = tmp_path / "copy.json"
    ledger = opened(file, [copy])
    ledger.settle(ledger.reserve("mix", 100, 110, counted(0)), 100, counted(107))
    assert not adopt(file, copy, EXPERIMENT)
    file.unlink()
    assert adopt(file, copy, EXPERIMENT)
    assert opened(file).spent_bytes == 107
    other = WearExperiment("server", "endurance", "nvme", ("S2",))
    assert not adopt(ledger_file(tmp_path, other), copy, other)


def test_one_experiment_has_one_account_whatever_the_candidate_is_called(tmp_path: Path) -> None:
    mine, theirs = (ledger_file(tmp_path / "state" / name, EXPERIMENT) for name in ("server", "alias"))
    WearLedger(theirs, replace(EXPERIMENT, candidate="alias"), BUDGET, "run-1", []).save()
    assert held_elsewhere(mine, EXPERIMENT) == theirs
    assert held_elsewhere(theirs, replace(EXPERIMENT, candidate="alias")) is None
    assert held_elsewhere(mine, replace(EXPERIMENT, scenario="another")) is None


def test_a_damaged_account_is_refused_with_its_remedy(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text('{"entries": [{}]}', encoding="utf-8")
    with pytest.raises(BenchError, match=r"cannot be read.*Put back the copy"):
        read_account(file)


@settings(deadline=None)  # every state is on the disk before it counts
@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["whole", "cut", "lost"])), max_size=12))
def test_the_budget_is_never_exceeded_by_the_drives_count(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """Whatever is interrupted, and whether the drive still knows: what it counted stays within the budget."""
    file = ledger_file(tmp_path_factory.mktemp("property"), EXPERIMENT)
    drive, boots = 0, 0
    for size, how in steps:
        ledger = opened(file)
        left_over = ledger.open_entry()
        if left_over:
            ledger.settle_interrupted(left_over, counted(drive, f"boot {boots}"))
        if size > ledger.left_bytes:
            continue
        entry = ledger.reserve("mix", size, size, counted(drive, f"boot {boots}"))
        drive += size if how == "whole" else size // 2
        if how == "whole":
            ledger.settle(entry, size, counted(drive, f"boot {boots}"))
        boots += how == "lost"
    assert drive <= BUDGET


def test_of_two_accounts_the_later_one_is_taken_though_it_counts_fewer_bytes(tmp_path: Path) -> None:
    """A step that is still reserved counts in full; settled, and with a small step after it, the sum is less."""

    def account(name: str, charged: list[int | None]) -> Path:
        ledger = opened(tmp_path / name, budget=10**6)
        for one in charged:
            entry = ledger.reserve("mix", one or 1000, 1000, counted(0))
            if one is not None:
                ledger.settle(entry, one, counted(one))
        return tmp_path / name

    file = account("account.json", [1000, None])
    later = account("later.json", [1000, 5, 900, 5])
    assert adopt(file, later, EXPERIMENT)
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(later.read_text(encoding="utf-8"))
    assert not adopt(file, account("earlier.json", [1000, None]), EXPERIMENT)
