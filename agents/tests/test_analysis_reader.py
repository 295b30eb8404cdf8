"""The analysis reader on real ROOT files of known truth: physics, bytes, cold caches, and what becomes of damage and dead workers."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
from analysis_helpers import REPOSITORY, files_of, shape

from daq_bench.analysis_reader import dataset, device, events, fits, point, reading, worker
from daq_bench.analysis_reader.cli import main
from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.shape import FULL, HIGH, LOW, RNTUPLE, SPARSE, TTREE, Resonance, Shape
from daq_bench.analysis_reader.tally import Tally, histogram, pair_masses, tally


def test_a_pair_decays_into_leptons_of_its_own_mass() -> None:
    mass = np.linspace(LOW, HIGH, 50)
    one, two = events.decay(np.random.default_rng(1), mass)
    total = one + two
    assert np.sqrt(total[0] ** 2 - (total[1:] ** 2).sum(axis=0)) == pytest.approx(mass)
    assert one[0] ** 2 == pytest.approx((one[1:] ** 2).sum(axis=0))  # massless


def test_masses_by_hand() -> None:
    columns = {
        "lep_pt": ak.Array([[10.0, 45.0, 45.0], [45.0, 45.0], [30.0, 40.0]]),
        "lep_eta": ak.Array([[3.0, 0.0, 0.0], [0.0, 0.0], [1.0, -1.0]]),
        "lep_phi": ak.Array([[0.0, 0.0, math.pi], [0.0, math.pi], [0.5, 0.5]]),
        "lep_charge": ak.Array([[1, 1, -1], [1, 1], [-1, 1]]),
    }
    # back to back: twice the pt; same charge: rejected; third: sqrt(2 x 30 x 40 x (cosh 2 - cos 0))
    assert pair_masses(columns) == pytest.approx([90.0, math.sqrt(2400 * (math.cosh(2) - 1))])


def test_a_histogram_keeps_what_lies_outside() -> None:
    counts = histogram("met", np.array([-1.0, 0.0, 1.9, 2.0, 200.0, 201.0, 500.0], np.float32))
    assert (counts[0], counts[1], counts[99], counts[100], counts[101]) == (2, 1, 1, 1, 2) and counts.sum() == 7


def test_tallies_add_up_in_any_order() -> None:
    arrays, _ = events.cluster(shape(), 0, 0, 90)
    whole = dataset.flat(arrays)
    parts = [tally(FULL, {name: column[first : first + 30] for name, column in whole.items()}) for first in (0, 30, 60)]
    forwards, backwards = Tally(), Tally()
    for one in parts:
        forwards.add(one)
    for one in reversed(parts):
        backwards.add(one)
    assert forwards.digest() == backwards.digest() == tally(FULL, whole).digest()
    changed = dict(whole)
    changed["trk_q07"] = whole["trk_q07"] + np.float32(1)
    assert tally(FULL, changed).digest() != forwards.digest()  # every variable counts


def test_the_fit_finds_what_was_generated_and_gives_equal_numbers_twice() -> None:
    mass, signal = events.masses(np.random.default_rng(3), 40_000, Resonance())
    counts = np.histogram(mass, len(fits.EDGES) - 1, (LOW, HIGH))[0]
    found = fits.fit(counts)
    assert found is not None and found == fits.fit(counts)
    for name, truth in (("mass", 91.19), ("width", 2.5), ("slope", 30.0), ("signal", signal.sum())):
        assert abs(found[name]["value"] - truth) < 4 * found[name]["error"], name
    assert found["mass"]["error"] < 0.05 and 60 < found["chi2"] < 180
    assert fits.fit(counts // 400) is None  # too few pairs


@pytest.mark.parametrize(("kind", "layout"), [(SPARSE, TTREE), (SPARSE, RNTUPLE), (FULL, TTREE), (FULL, RNTUPLE)])
def test_what_is_read_is_what_was_generated(tmp_path: Path, kind: str, layout: str) -> None:
    made = dataset.generate(tmp_path / "set", shape(kind, layout), 1)
    found = point.measure(files_of(tmp_path / "set"), kind, 2, [], False)
    result, truth = found["result"], made["truth"]
    assert (result["entries"], result["digest"]) == (1200, truth["digest"])
    if kind == FULL:
        assert (result["balanced"], result["selected"]) == (1200, truth["opposite"])
        assert sum(abs(one - other) for one, other in zip(result["mass"], truth["mass"], strict=True)) <= 2
    asked = sum(record["fetched_bytes"] for record in found["records"])
    by_calls = sum(record["rchar"] for record in found["records"])
    share = {SPARSE: (0.0, 0.2), FULL: (0.9, 1.01)}[kind]
    assert share[0] < asked / made["bytes"] <= share[1]  # one variable, or nearly the whole file
    assert by_calls >= asked  # two counters that know nothing of one another
    assert sum(record["files"] for record in found["records"]) == 4


def test_the_same_seed_gives_the_same_events_and_another_seed_others(tmp_path: Path) -> None:
    truths = [
        dataset.generate(tmp_path / str(number), shape(seed=seed), 1 + number % 2)["truth"]
        for number, seed in enumerate((5, 5, 6))
    ]
    assert truths[0] == truths[1] != truths[2]
    assert dataset.load(tmp_path / "0")["shape"] == shape(seed=5).as_document()
    assert Shape.of(shape(seed=5).as_document()) == shape(seed=5)


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    dataset.generate(tmp_path / "set", shape(), 1)
    results = [point.measure(files_of(tmp_path / "set"), FULL, workers, [], False)["result"] for workers in (1, 3, 6)]
    assert results[0] == results[1] == results[2] and results[0]["fit"]["mass"]["value"] == pytest.approx(91.19, abs=2)


def test_only_a_cold_cache_makes_the_kernel_fetch(disk: Path) -> None:
    made = dataset.generate(disk / "set", shape(), 1)
    files = files_of(disk / "set")
    cold = point.measure(files, FULL, 1, [], False)["records"][0]
    assert cold["read_bytes"] >= cold["fetched_bytes"] > 0.9 * made["bytes"]
    before = reading.process_io()["read_bytes"]
    for path in files:
        reading.read_file(path, FULL)
    assert reading.process_io()["read_bytes"] - before < 0.1 * made["bytes"]  # warm: what a masked point looks like


def damaged(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "overwritten":
        first, last = len(content) // 4, 3 * len(content) // 4
        content[first:last] = bytes(last - first)
    else:
        text = b"this is no ROOT file, whatever its name and its size say"
        content[: len(text)] = text
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("how", ["overwritten", "no ROOT file"])
@pytest.mark.parametrize("layout", [TTREE, RNTUPLE])
def test_a_damaged_file_is_named(tmp_path: Path, how: str, layout: str) -> None:
    dataset.generate(tmp_path / "set", shape(layout=layout), 1)
    damaged(tmp_path / "set" / "events-0002.root", how)
    with pytest.raises(ReaderError, match=r"events-0002\.root: cannot be read as a ROOT file of the set"):
        point.measure(files_of(tmp_path / "set"), FULL, 2, [], False)
    assert not multiprocessing.active_children()


def test_a_file_that_is_short_or_gone_is_named_before_anything_is_read(tmp_path: Path) -> None:
    dataset.generate(tmp_path / "set", shape(), 1)
    file = tmp_path / "set" / "events-0001.root"
    os.truncate(file, 1000)
    with pytest.raises(ReaderError, match=r"events-0001\.root: has 1000 B, \d+ B were written"):
        dataset.load(tmp_path / "set")
    file.unlink()
    with pytest.raises(ReaderError, match=r"events-0001\.root: is not there"):
        dataset.load(tmp_path / "set")
    with pytest.raises(ReaderError, match=r"set\.json: .*Generate the set first"):
        dataset.load(tmp_path)


def test_a_set_that_does_not_fit_or_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match=r"need up to \d+ B, \d+ B are free"):
        dataset.generate(tmp_path / "large", shape(events=10**12), 1)
    (tmp_path / "file").touch()
    with pytest.raises(ReaderError, match="Not a directory"):
        dataset.generate(tmp_path / "file" / "set", shape(), 1)
    with pytest.raises(ReaderError, match="File exists"):
        dataset.generate(tmp_path / "file", shape(), 1)
    with pytest.raises(ReaderError, match="compression 'zip-1' is not known"):
        dataset.generate(tmp_path / "set", shape(compression="zip-1"), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_folder: Path, _shape: Shape, file: int) -> dict[str, Any]:
        if file == 0:
            return original(_folder, _shape, file)
        raise OSError(28, "No space left on device")

    original = dataset.write_file
    monkeypatch.setattr(dataset, "write_file", full)
    monkeypatch.setattr(dataset, "ProcessPoolExecutor", InThisProcess)
    with pytest.raises(ReaderError, match="No space left on device: the set was not written"):
        dataset.generate(tmp_path / "set", shape(), 1)
    assert list(tmp_path.iterdir()) == []


class InThisProcess:
    """A pool without processes, so that what a test has replaced is there."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.map = map

    def __enter__(self) -> InThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_a_worker_that_dies_is_an_error_and_takes_the_others_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.generate(tmp_path / "set", shape(), 1)

    def dies(path: Path, analysis: str) -> dict[str, Any]:
        if path.name == "events-0002.root":
            os.kill(os.getpid(), signal.SIGKILL)
        return reading.read_file(path, analysis)

    monkeypatch.setattr(worker, "read_file", dies)  # the workers are forked from here
    with pytest.raises(
        ReaderError, match=r"worker \d \(pid \d+\) died with exit status -9 before it had read its files"
    ):
        point.measure(files_of(tmp_path / "set"), FULL, 3, [], False)
    assert not multiprocessing.active_children()


def test_a_fault_of_ours_in_a_worker_is_told_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset.generate(tmp_path / "set", shape(), 1)
    monkeypatch.setattr(worker, "read_file", lambda *_: 1 / 0)
    with pytest.raises(ReaderError, match=r"(?s)worker \d: Traceback.*ZeroDivisionError"):
        point.measure(files_of(tmp_path / "set"), FULL, 1, [], False)


def test_counters_are_sectors_read(tmp_path: Path) -> None:
    (tmp_path / "sda").mkdir()
    (tmp_path / "sda" / "stat").write_text("  10 2 2048 5 7 0 99 1 0 3 4\n")
    assert device.read_bytes(["sda"], tmp_path) == {"sda": 2048 * 512}
    with pytest.raises(ReaderError, match=r"device sdz: .*has no counters"):
        device.read_bytes(["sda", "sdz"], tmp_path)


def asked(folder: Path, *more: str) -> list[str]:
    return [
        "generate",
        f"--set={folder}",
        f"--json={folder}.json",
        "--kind=sparse",
        "--seed=1",
        "--event-bytes=1000",
        *more,
    ]


def test_the_command_line_says_what_is_wrong_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, words in (
        (["--events=0", "--files=1", "--cluster-events=1"], "--events 0: give 1 or more"),
        (["--events=2", "--files=3", "--cluster-events=1"], "--files 3: there are 2 events"),
        (["--events=20", "--files=2", "--cluster-events=10", "--compression=zlib"], "compression 'zlib' is not known"),
    ):
        assert main(asked(tmp_path / "set", *options)) == 1
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1
    assert main(["points", f"--set={tmp_path}", f"--json={tmp_path / 'p.json'}", "--workers=1", "--analysis=full"]) == 1
    assert "Generate the set first" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_packed_reader_generates_and_measures(tmp_path: Path) -> None:
    packed = tmp_path / "analysis_reader.pyz"
    pack = [sys.executable, REPOSITORY / "agents" / "build_pyz.py", "--package", "analysis_reader", "--output", packed]
    subprocess.run(pack, check=True)
    command = [sys.executable, str(packed)]
    options = asked(tmp_path / "set", "--events=400", "--files=2", "--cluster-events=100")
    subprocess.run([*command, *options], check=True, timeout=300)
    measured = [
        "points",
        f"--set={tmp_path / 'set'}",
        f"--json={tmp_path / 'p.json'}",
        "--workers=2",
        "--analysis=sparse",
    ]
    subprocess.run([*command, *measured], check=True, timeout=300)
    made, found = (json.loads((tmp_path / name).read_text()) for name in ("set.json", "p.json"))
    assert found["points"][0]["result"]["digest"] == made["truth"]["digest"] and made["versions"]["uproot"]
