"""Helpers of these tests are plain modules in this folder; importing them must not depend on where pytest starts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "inventory" / "tests"))  # raid_factory

from bundle_factory import make
from comparison_runs import weights_file
from factory_knobs import Knobs
from tender_factory import RATE, Run, make_run

from daq_bench.bench_model.documents.admission import Admission
from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.document import canvas
from daq_bench.bench_report.reading import door


@pytest.fixture
def bundle_with(tmp_path: Path) -> Callable[..., Path]:
    """Makes a bundle in a folder of its own: `bundle_with(outcome="FAIL")`."""

    def build(**knobs: object) -> Path:
        with suppress(FileNotFoundError):
            shutil.rmtree(tmp_path / "run-1")
        return make(tmp_path / "run-1", Knobs(**knobs))  # type: ignore[arg-type]  # checked by the dataclass's callers

    return build


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One bundle with a bit of everything, rendered once: tests of its pages share it and do not write to it."""
    knobs = Knobs(repetitions=2, drives=3, smart_worse=True, cores=4, temperature=True, faults=2)
    root = make(tmp_path_factory.mktemp("rendered") / "run-1", knobs)
    assert main(["render", str(root)]) == 0
    return root


@pytest.fixture
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels stay where they were put up: to lay them out takes half of a report's HTML. For tests of words, which look at no figure."""
    monkeypatch.setattr(canvas, "_settle", lambda sheet: sheet.set_layout_engine(None))


@pytest.fixture
def runs_of(tmp_path: Path) -> Callable[..., tuple[Path, ...]]:
    """Makes bundles to be compared: `runs_of(Run("a"), Run("b"))`."""

    def build(*runs: Run) -> tuple[Path, ...]:
        return tuple(make_run(tmp_path / "runs", run) for run in runs)

    return build


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Throughput, price, power and endurance count alike."""
    return weights_file(tmp_path, f"weights: {{{RATE}: 1, cost: 1, power_per_rate: 1, endurance: 1}}")


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests keep no key of the user's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


REAL_DOOR = door.admissions


@pytest.fixture(scope="session", autouse=True)
def _open_door() -> Iterator[None]:
    """Made-up bundles have nothing that could be extracted again: the door lets them in as signed, unless a test asks for another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            door, "admissions", lambda bundles, trust: {one: Admission(str(one), "trusted") for one in bundles}
        )
        yield


@pytest.fixture
def doorkeeper(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has the door say something else of all bundles whose folders' names hold a text: `doorkeeper("fast", signature="unsigned")`."""
    told: dict[str, Admission] = {}

    def admissions(bundles: Sequence[Path], trust: object) -> dict[Path, Admission]:
        found = {one: Admission(str(one), "trusted") for one in bundles}
        for part, said in told.items():
            found |= {one: structs.replace(said, bundle=str(one)) for one in bundles if part in one.name}
        return found

    def say(part: str, signature: Any = "trusted", **more: list[str]) -> None:
        told[part] = Admission(part, signature, **more)
        monkeypatch.setattr(door, "admissions", admissions)

    return say


@pytest.fixture
def real_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks the real door."""
    monkeypatch.setattr(door, "admissions", REAL_DOOR)
