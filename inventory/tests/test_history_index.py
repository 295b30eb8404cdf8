"""The index over bundles: the same as reading them, quick, and never believed over a bundle."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import conclude, seal
from nights_factory import NightPlan, season, write_night

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle import bundle_state, user_key
from daq_bench.bench_model.nights import history_index, night_columns
from daq_bench.bench_model.nights.history_index import FOLDER, forget
from daq_bench.bench_model.nights.night import LeftOut, Night, night_or_reason, read_night
from daq_bench.bench_model.nights.run_history import read_all


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles of these tests are settled as soon as they are written."""
    monkeypatch.setattr(bundle_state, "SETTLED_NS", -1)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bundles that were read and judged since it was emptied."""
    names: list[str] = []

    def counted(bundle: Path) -> Night | LeftOut:
        names.append(bundle.name)
        return night_or_reason(bundle)

    monkeypatch.setattr(history_index, "night_or_reason", counted)
    return names


@pytest.fixture
def runs(tmp_path: Path, judged: list[str]) -> Path:
    """Five runs, the last of which fails, that the index knows."""
    folder = tmp_path / "runs"
    for number in range(4):
        write_night(folder, NightPlan(number, hours=100.0 + 24 * number, inlet=22.0))
    write_night(folder, NightPlan(4, lost=1.0))
    assert len(read_all([folder])[0]) == 5
    judged.clear()
    return folder


def bundles(runs: Path) -> list[Path]:
    return sorted(path for path in runs.iterdir() if path.name != FOLDER)


def index_of(runs: Path) -> Path:
    return next((runs / FOLDER).glob("*.parquet"))


def outcomes(runs: Path) -> dict[str, str]:
    return {night.id: night.outcome for night in read_all([runs])[0]}


def test_it_says_what_reading_says(tmp_path: Path, judged: list[str]) -> None:
    for plan in [
        *season(),
        NightPlan(40, half=None, outcome="INADMISSIBLE"),
        NightPlan(41, state="interrupted"),
        NightPlan(42, lost=2),
    ]:
        write_night(tmp_path, plan)
    (tmp_path / "empty").mkdir()
    shutil.copytree(tmp_path / NightPlan(42, lost=2).run_id, tmp_path / "odd")
    (tmp_path / "odd" / "link").symlink_to("/etc/passwd")
    seal(tmp_path / "odd")
    first = read_all([tmp_path])
    judged.clear()
    assert read_all([tmp_path]) == first
    assert judged == ["empty"]  # it has no manifest to be known by
    read = [night_or_reason(bundle) for bundle in bundles(tmp_path)]
    assert [*first[0], *first[1]] == [
        *(one for one in read if isinstance(one, Night)),
        *(one for one in read if isinstance(one, LeftOut)),
    ]
    assert all(str(tmp_path) not in one.reason for one in first[1])


def test_what_it_knows_is_not_judged_again_wherever_the_folder_is(runs: Path, judged: list[str]) -> None:
    before = read_all([runs])[0]
    moved = runs.rename(runs.with_name("moved"))
    after = read_all([moved])[0]
    assert judged == []
    assert [night.path.parent for night in after] == [moved] * 5
    assert [replace(night, path=runs / night.path.name) for night in after] == before


def test_one_candidates_runs_alone(runs: Path, judged: list[str]) -> None:
    write_night(runs, NightPlan(9, candidate="server-b"))
    (runs / "torn").mkdir()
    for _ in range(2):  # read, then indexed
        nights, broken = read_all([runs], "server-b")
        assert [night.id for night in nights] == [NightPlan(9, candidate="server-b").run_id]
        assert [one.name for one in broken] == ["torn"]


def altered_behind_its_times(file: Path) -> None:
    """Another content of the same length, with the time of change put back."""
    times = file.stat()
    content = file.read_bytes()
    file.write_bytes(content.replace(b"2.1", b"9.9"))
    assert file.stat().st_size == len(content) and file.read_bytes() != content
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_an_altered_bundle_is_found_whatever_its_times_say(runs: Path) -> None:
    altered_behind_its_times(bundles(runs)[1] / "facts" / "host.json")
    nights, broken = read_all([runs])
    assert len(nights) == 4
    assert [one.reason for one in broken] == ["was altered since it was sealed (facts/host.json)"]


@pytest.mark.parametrize("name", ["MANIFEST.sha256", "verdict.json", "results/night.json", "profiles/metrics.yml"])
def test_a_bundle_that_lost_a_file_is_no_longer_counted(runs: Path, name: str) -> None:
    (bundles(runs)[2] / name).unlink()
    nights, broken = read_all([runs])
    assert (len(nights), len(broken)) == (4, 1)


def test_a_file_that_was_added_to_a_bundle_is_found(runs: Path) -> None:
    (bundles(runs)[2] / "results" / "more.json").write_text("{}", encoding="utf-8")
    assert [one.reason for one in read_all([runs])[1]] == ["was altered since it was sealed (results/more.json)"]


def test_a_removed_a_renamed_and_a_new_bundle(runs: Path, judged: list[str]) -> None:
    gone, renamed, *_ = bundles(runs)
    shutil.rmtree(gone)
    renamed.rename(runs / "renamed")
    write_night(runs, NightPlan(7))
    nights, _ = read_all([runs])
    assert sorted(night.path.name for night in nights) == sorted(path.name for path in bundles(runs))
    assert sorted(judged) == sorted(["renamed", NightPlan(7).run_id])
    judged.clear()
    assert len(read_all([runs])[0]) == 5 and judged == []


def test_two_bundles_that_change_places_keep_their_own_verdicts(runs: Path) -> None:
    *_, passed, failed = bundles(runs)
    before = outcomes(runs)
    assert (before[passed.name], before[failed.name]) == ("PASS", "FAIL")
    passed.rename(runs / "aside")
    failed.rename(passed)
    (runs / "aside").rename(failed)
    assert outcomes(runs) == before  # by their own ids
    found = {night.path.name: night.outcome for night in read_all([runs])[0]}
    assert (found[passed.name], found[failed.name]) == ("FAIL", "PASS")


def test_a_run_that_was_measured_better_and_sealed_again_shows_what_it_is_now(runs: Path) -> None:
    failed = bundles(runs)[-1]
    text = (failed / "results" / "night.json").read_text(encoding="utf-8")
    (failed / "results" / "night.json").write_text(text.replace('"lost": [1.0]', '"lost": [0.0]'), encoding="utf-8")
    seal(failed)
    assert "contradicts itself" in read_all([runs])[1][0].reason
    conclude(failed)
    assert outcomes(runs)[failed.name] == "PASS"


def forge(runs: Path) -> bytes:
    """Makes every run of the index a PASS; returns the file."""
    file = index_of(runs)
    rows = parquet.read_table(file).to_pylist()
    parquet.write_table(
        parquet.read_table(file).from_pylist(
            [{**row, "outcome": "PASS", "reasons": []} for row in rows], parquet.read_schema(file)
        ),
        file,
    )
    assert parquet.read_table(file)["outcome"].to_pylist() == ["PASS"] * 5
    return file.read_bytes()


def test_a_forged_index_changes_no_verdict(runs: Path, judged: list[str]) -> None:
    before = outcomes(runs)
    forge(runs)
    assert outcomes(runs) == before and "FAIL" in before.values()
    assert len(judged) == 5
    judged.clear()
    assert outcomes(runs) == before and judged == []  # it was made again


def test_nor_does_one_that_was_sealed_by_another_key(
    runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content = forge(runs)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    theirs = history_index.Index.of(runs)
    assert theirs is not None
    seal_of_theirs = theirs._seal(content)
    monkeypatch.undo()
    index_of(runs).with_name(f"{index_of(runs).name}.seal").write_bytes(seal_of_theirs)
    assert "FAIL" in outcomes(runs).values()


@pytest.mark.parametrize("left", [0, 1, 100, 0.5, 0.999])
def test_a_half_written_index_is_made_again(runs: Path, judged: list[str], left: float) -> None:
    before, file = outcomes(runs), index_of(runs)
    content = file.read_bytes()
    file.write_bytes(content[: int(left * len(content)) if 0 < left < 1 else int(left)])
    assert outcomes(runs) == before
    assert len(judged) == 5 and file.read_bytes()[-4:] == b"PAR1"


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "the index is gone": lambda file: file.unlink(),
    "the seal is gone": lambda file: file.with_name(f"{file.name}.seal").unlink(),
    "the seal is empty": lambda file: file.with_name(f"{file.name}.seal").write_bytes(b""),
    "the seal is of before": lambda file: file.with_name(f"{file.name}.seal").write_bytes(b"0" * 64),
    "the index is a link": lambda file: file.rename(file.with_name("other")) and file.symlink_to("other"),
    "the index is a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "all is gone": lambda file: shutil.rmtree(file.parent),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_made_again(runs: Path, judged: list[str], damage: str) -> None:
    before = outcomes(runs)
    DAMAGE[damage](index_of(runs))
    assert outcomes(runs) == before and len(judged) == 5
    judged.clear()
    assert outcomes(runs) == before and judged == []


HINDRANCES: dict[str, Callable[[Path, Path], Any]] = {
    "a file in the folder's place": lambda runs, _: (shutil.rmtree(runs / FOLDER), (runs / FOLDER).touch()),
    "a link in the folder's place": lambda runs, state: (
        shutil.rmtree(runs / FOLDER),
        (runs / FOLDER).symlink_to(state),
    ),
    "a link in the lock's place": lambda runs, state: (
        (runs / FOLDER / "lock").unlink(),
        (runs / FOLDER / "lock").symlink_to(state / "x"),
    ),
    "a key that others can read": lambda _, state: (state / "daq-storage-bench" / user_key.FILE).chmod(0o644),
    "a key that was cut short": lambda _, state: (state / "daq-storage-bench" / user_key.FILE).write_bytes(b"short"),
    "a key that is too long": lambda _, state: (state / "daq-storage-bench" / user_key.FILE).write_bytes(b"long" * 100),
}


@pytest.mark.parametrize("hindrance", HINDRANCES)
def test_where_none_can_be_kept_every_bundle_is_read(
    runs: Path, judged: list[str], hindrance: str, _own_state: Path
) -> None:
    before = outcomes(runs)
    HINDRANCES[hindrance](runs, _own_state)
    for _ in range(2):
        assert outcomes(runs) == before
    assert len(judged) == 10
    assert not (_own_state / "x").exists()


def test_without_pyarrow_every_bundle_is_read(runs: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_all([runs])
    monkeypatch.setattr(history_index.importlib.util, "find_spec", lambda name: None)
    assert read_all([runs]) == before
    assert len(judged) == 5


def test_another_version_of_the_bench_judges_again(
    runs: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_index, "judged_by", lambda: b"another")
    assert len(outcomes(runs)) == 5 and len(judged) == 5


def test_the_index_knows_every_module_that_a_verdict_follows_from() -> None:
    """A rule that changed may lie in the kit, or in a workload's own folder."""
    text = (
        "import sys; from pathlib import Path; from daq_bench.bench_model.base.places import deciding_folders\n"
        "from daq_bench.bench_model.verdict import judging; from daq_bench.bench_model.workloads.table import model_of\n"
        "model_of('lan')\n"
        "files = [one.__file__ for name, one in sys.modules.items() if name.startswith('daq_bench.') and one.__file__]\n"
        "print(*(file for file in files if not any(Path(file).is_relative_to(one) for one in deciding_folders())), sep='\\n')\n"
        "assert any('workloads/lan/model' in file for file in files)\n"
        "assert any('candidate_kit/plausible' in file for file in files)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_bundle_that_may_still_change_without_a_trace_is_not_kept(
    runs: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a second change within the grain of the file system's clock would be."""
    monkeypatch.setattr(bundle_state, "SETTLED_NS", 3600 * 10**9)
    write_night(runs, NightPlan(8))
    for _ in range(2):
        assert NightPlan(8).run_id in outcomes(runs)
    assert judged.count(NightPlan(8).run_id) == 2


def test_a_clock_that_was_put_back_keeps_nothing(tmp_path: Path) -> None:
    state = bundle_state.state_of(write_night(tmp_path, NightPlan(1)))
    assert state is not None
    assert not state.settled(state.changed_ns - 3600 * 10**9)


def test_many_bundles_are_read_by_helpers_in_the_same_order(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The helpers are other processes, which do not know the workload that these tests made up: they say so of each run."""
    shutil.rmtree(runs / FOLDER)
    monkeypatch.setattr(history_index, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    _, broken = read_all([runs])
    assert [one.name for one in broken] == [path.name for path in bundles(runs)]
    assert all("does not know how to tell whether the plan was covered" in one.reason for one in broken)


def name_or_death(bundle: Path) -> str:
    if bundle.name == "dies":
        os._exit(9)
    return bundle.name


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_helper_that_dies_ends_the_reading(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_index, "WORTH_PROCESSES", 1)
    kind: history_index.Kind[str] = history_index.Kind("", name_or_death, dict, lambda *_: None, lambda *_: [])
    asked = [Path(f"run-{number}") for number in range(count)]
    assert history_index._read(kind, asked) == [bundle.name for bundle in asked]
    with pytest.raises(BenchError, match=r"a helper that reads \d+ bundles ended with status 9\. Free memory"):
        history_index._read(kind, [*asked, Path("dies")])


READ = """
import os, pathlib, sys
from daq_bench.bench_model.bundle import bundle_state
from daq_bench.bench_model.nights.run_history import read_all
bundle_state.SETTLED_NS = -1
read = [pathlib.Path(sys.argv[1])]
found = read_all(read)[1]  # loads what has threads of its own, and makes the index
threads = len(os.listdir("/proc/self/task"))
assert len(read_all(read)[1]) == len(found)
print(len(found))
assert len(os.listdir("/proc/self/task")) == threads, "a thread that is still there may abort a process that ends"
"""


def test_processes_that_read_at_the_same_time_leave_a_whole_index(runs: Path) -> None:
    """They do not know the workload that these tests made up, and leave all five out."""
    index_of(runs).unlink()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", READ, str(runs)]
    readers = [subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) for _ in range(4)]
    assert [(one.communicate(timeout=120)[0], one.returncode) for one in readers] == [("5\n", 0)] * 4
    index = history_index.Index.of(runs)
    assert index is not None and len(index._load()) == 5


def test_a_night_of_the_index_is_the_night(runs: Path) -> None:
    for night in read_all([runs])[0]:
        assert night == read_night(night.path)
        assert isinstance(night.rows[0].confidence_interval, tuple) and isinstance(night.rows[0].evidence, list)


@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
def test_rows_are_read_some_at_a_time_and_none_is_left_out(
    runs: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(night_columns, "ROWS_AT_ONCE", rows)
    found = [*read_all([runs])[0], LeftOut("broken", "its seal does not fit")] * 2
    assert night_columns.nights_of(night_columns.table_of(found, ["unchanged"] * len(found)), runs) == found


def test_the_index_keeps_the_mark_of_a_simulated_run(runs: Path) -> None:
    marked = replace(read_all([runs])[0][0], simulated=True)
    assert history_index.nights_of(history_index.table_of([marked], ["unchanged"]), runs) == [marked]


def test_an_index_that_is_forgotten_is_made_of_the_bundles(runs: Path, judged: list[str]) -> None:
    before, content = outcomes(runs), index_of(runs).read_bytes()
    forget(runs)
    assert not list((runs / FOLDER).glob("*.parquet"))
    assert outcomes(runs) == before and len(judged) == 5
    assert len(index_of(runs).read_bytes()) == len(content)
    forget(runs / "nowhere")
    assert not (runs / "nowhere").exists()


TOGETHER = """
import sys, threading
from pathlib import Path
from daq_bench.bench_model.nights.night import night_or_reason
sys.setswitchinterval(1e-5)
begin, bundles = threading.Barrier(8), sorted(Path(sys.argv[1]).glob("2*"))
def read(bundle):
    begin.wait()
    night_or_reason(bundle)
threads = [threading.Thread(target=read, args=(bundles[at % len(bundles)],)) for at in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


def test_runs_that_end_at_one_moment_are_read_by_threads_of_one_process(runs: Path) -> None:
    """msgspec learns a type at its first use: two threads that used one first crashed in every other process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(8):
        done = subprocess.run(
            [sys.executable, "-c", TOGETHER, str(runs)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
