"""Results are extracted again from what the tools of a real, small run said: as stored where nothing was touched, else named."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from small_runs import LAYOUT, SMALL, small_run
from tool_answers import OF_THE_RIG, RECORDED, answer

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError
from daq_bench.bench_model.bundle.provenance import digest_of
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.documents.tools.hotstore import HotstoreBench
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.evidence import derived
from daq_bench.bench_model.evidence.counted_load import miscounted
from daq_bench.bench_model.evidence.coverage import gaps
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.workloads.table import MODELS
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.journal import Answers, DivergedError, Recording, Replay, read_journal, recorded
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.checking.check_bundle import check_bundle
from daq_bench.rig.checking.extraction import extract_again
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.rig.workloads.hot_store import plans as hot_store_plans
from daq_bench.rig.workloads.hot_store import workload as hot_store
from daq_bench.rig.workloads.registry import WORKLOADS
from daq_bench.rig.workloads.shared.site import agreeing

pytestmark = pytest.mark.integration  # small real runs with loads at a pace: other tests beside them would be its holes
LONG = (
    "thermal",
    "hot_store",
    "lan",
    "streams_checksum",
    "concurrent_analysis",
)  # from half a minute to some minutes each
MEASURED = [pytest.param(name, marks=pytest.mark.campaign) if name in LONG else name for name in SMALL]
ROW_THAT_SAYS_WHY = " does not count: "  # a busy machine may be too slow for a row, which then gives its own reason
PART_OF_A_DRIVE = "Preconditioned over "  # a file of some MB on this machine's own drive
JOURNAL = "results/raw/block_scan-journal.jsonl"

Make = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """A function that gives the bundle of a workload's small run, which is made once and must stay as it is."""
    bundles: dict[str, Path] = {}
    folder = LAYOUT.build / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    locks = pytest.MonkeyPatch()
    locks.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path_factory.mktemp("locks")))
    disk = Path(tempfile.mkdtemp(dir=folder))

    def make(workload: str) -> Path:
        if workload not in bundles:
            scratch = disk / workload
            scratch.mkdir()
            bundles[workload] = small_run(tmp_path_factory.mktemp(workload), scratch, workload)
        return bundles[workload]

    yield make
    locks.undo()
    shutil.rmtree(disk)


@pytest.fixture
def bundle_of(made: Make, tmp_path: Path) -> Make:
    """Returns, as `made` does, a bundle: a copy that a test may change."""

    def copy(workload: str) -> Path:
        found = made(workload)
        return Path(shutil.copytree(found, tmp_path / "runs" / found.name))

    return copy


def test_every_workload_has_a_small_run() -> None:
    """Here, or in a test module of the workload's own, which extracts it again."""
    elsewhere = WORKLOADS.keys() - SMALL.keys()
    assert SMALL.keys() <= WORKLOADS.keys()
    for name in elsewhere:
        assert "extract_again(" in Path(__file__).with_name(f"test_{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("workload", MEASURED)
def test_what_was_measured_is_extracted_again_as_it_is_stored(made: Make, workload: str) -> None:
    bundle = made(workload)
    before = {file: file.stat().st_mtime_ns for file in bundle.rglob("*")}
    found = extract_again(bundle)
    assert (found.problems, found.notes, found.again) == ([], [], [WORKLOADS[workload].result])
    assert {file: file.stat().st_mtime_ns for file in bundle.rglob("*")} == before, "checking changed the bundle"


@pytest.mark.parametrize("workload", MEASURED)
def test_a_small_real_run_has_no_hole_in_its_plan_and_is_what_the_bench_writes(made: Make, workload: str) -> None:
    """The judge asks of each document what its workload really leaves: a rule that a real run misses would let no run pass."""
    bundle = made(workload)
    run = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    results = {
        f"results/{file.name}": json.loads(file.read_text(encoding="utf-8"))
        for file in (bundle / "results").glob("*.json")
    }
    made_at_the_end = derived.documents(bundle)[0]
    results |= {one.file: made_at_the_end[one.file] for one in MODELS[workload].beside if one.file in made_at_the_end}
    faults = [fault_of(file, document) for file, document in (("run.json", run), *results.items())]
    assert faults == [""] * (len(results) + 1)
    assert [
        gap.text
        for gap in gaps(read(run, Run, "run.json"), results)
        if ROW_THAT_SAYS_WHY not in gap.text and PART_OF_A_DRIVE not in gap.text
    ] == []
    assert [text for _, text, invalidates in miscounted(run["scenario"]["parameters"], results) if invalidates] == []


def test_the_small_block_scan_measures_its_large_block_again(made: Make) -> None:
    """Each repetition that the plan names is in the journal, so that it is extracted again as every other row."""
    bundle = made("block_scan")
    document = json.loads((bundle / WORKLOADS["block_scan"].result).read_text(encoding="utf-8"))
    for scan in (document, *document["others"]):
        repeated = [(one["block_bytes"], one["repetition"]) for one in scan["large_blocks"]["repetitions"]]
        assert repeated == [(8 * 2**20, number) for number in (1, 2, 3)]


@pytest.mark.parametrize("workload", MEASURED)
def test_an_altered_number_of_a_result_is_named(bundle_of: Make, workload: str) -> None:
    bundle = bundle_of(workload)
    file = bundle / WORKLOADS[workload].result
    stored = json.loads(file.read_text(encoding="utf-8"))
    numbers = list(numbers_of(stored))
    for path, value in (numbers[len(numbers) // 3], numbers[-1], numbers[len(numbers) // 2]):
        file.write_text(json.dumps(with_value(stored, path, value * 1.001 + 1)), encoding="utf-8")
        problems = extract_again(bundle).problems
        shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
        assert len(problems) == 1
        assert problems[0].startswith(f"{WORKLOADS[workload].result}: {shown} is ")


@pytest.mark.parametrize("workload", MEASURED)
def test_an_altered_a_missing_and_an_added_file_of_a_tool_are_named(bundle_of: Make, workload: str) -> None:
    bundle = bundle_of(workload)
    files = sorted(file for file in (bundle / "results" / "raw").iterdir() if not file.name.endswith("journal.jsonl"))
    if not files:
        pytest.skip("its tools leave no file: what they said is in the journal")
    for file in (files[0], files[-1]):
        kept = file.read_bytes()
        file.write_bytes(re.sub(rb"[0-8]", b"9", kept, count=1))
        assert any(text.startswith(f"results/raw/{file.name}: is not what") for text in extract_again(bundle).problems)
        file.unlink()
        assert any(text.startswith(f"results/raw/{file.name}: missing") for text in extract_again(bundle).problems)
        file.write_bytes(kept)
    (bundle / "results" / "raw" / "better.json").write_text("{}", encoding="utf-8")
    assert extract_again(bundle).problems == [
        "results/raw/better.json: the run did not leave it, and no result refers to it"
    ]


@pytest.mark.parametrize("state", ["error", "finished"])
def test_a_killed_workload_lists_no_files_and_only_a_run_that_is_no_evidence_may_have_one(
    bundle_of: Make, state: str
) -> None:
    bundle = bundle_of("block_scan")
    raw, run = bundle / "results" / "raw", bundle / "run.json"
    journal = raw / "block_scan-journal.jsonl"
    journal.write_text("".join(journal.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    (bundle / "results" / "block_scan.json").unlink()
    run.write_text(json.dumps(json.loads(run.read_text(encoding="utf-8")) | {"state": state}), encoding="utf-8")
    found = extract_again(bundle)
    strange = [text for text in (*found.notes, *found.problems) if "the run did not leave it" in text]
    assert strange and strange == (found.notes if state == "error" else found.problems)


@pytest.mark.parametrize("workload", MEASURED)
def test_a_tool_that_failed_gives_another_result_or_none(bundle_of: Make, workload: str) -> None:
    """The journal alone is changed: the last tool that decides something failed, and its result does not stand any more."""
    bundle = bundle_of(workload)
    journal = bundle / "results" / "raw" / f"{workload}-journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    line = [one for one in lines if decides(one)][-1]
    line |= {"exit_status": 1, "stdout": ""} if line["do"] == "run" else {"error": "it failed", "kind": "BenchError"}
    journal.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    assert extract_again(bundle).problems, f"{line['words']} failed, and its result still counts"


def decides(line: dict[str, Any]) -> bool:
    """Trimming and tidying up may fail."""
    words = [Path(word).name for word in line["words"][:2]]
    return line["do"] in ("run", "call") and not {*words} & {"findmnt", "fstrim", "rmdir", "remove"}


def numbers_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from numbers_of(one, (*path, key))
    elif isinstance(value, list):
        for key, one in enumerate(value):
            yield from numbers_of(one, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = list(document) if isinstance(document, list) else dict(document)
    changed[path[0]] = with_value(document[path[0]], path[1:], value)
    return changed


def forged(bundle: Path, old: str, new: str) -> None:
    """Replaces a text in everything that a workload left and in its journal, whose list of files then names the new ones."""
    raw = bundle / "results" / "raw"
    for file in raw.iterdir():
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    *lines, end = (bundle / JOURNAL).read_text(encoding="utf-8").splitlines()
    files = {file.name: digest_of(file) for file in sorted(raw.iterdir()) if not file.name.endswith("journal.jsonl")}
    told = [*lines, json.dumps({**json.loads(end), "files": files})]
    (bundle / JOURNAL).write_text("".join(f"{line}\n" for line in told), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("overwrite=1", "overwrite=0", "/block-scan.fio"),
        ("IO_DEPTH=4", "IO_DEPTH=8", "run env TARGET="),
        ("BLOCK_BYTES=65536", "BLOCK_BYTES=1048576", "run env TARGET="),
        ('"--output-format=json", ', '"--output-format=json", "--section=point", ', "run env TARGET="),
    ],
)
def test_another_job_file_and_other_values_than_planned_are_named(
    bundle_of: Make, old: str, new: str, named: str
) -> None:
    """Also where the forger has thought of every copy: the checker's own job file and the scenario say what was to run."""
    bundle = bundle_of("block_scan")
    assert old in (bundle / JOURNAL).read_text(encoding="utf-8")
    forged(bundle, old, new)
    (problem, *_) = extract_again(bundle).problems
    assert problem.startswith("results/block_scan.json: cannot be extracted again: the run never did this")
    assert named in problem


@pytest.mark.parametrize("name", ["block-scan.fio", "layout.fio", "fio-65536.sh"])
def test_a_job_file_that_was_lost_or_changed_in_the_bundle_is_named(bundle_of: Make, name: str) -> None:
    """With the list of files made fit: the workload itself leaves another file."""
    bundle = bundle_of("block_scan")
    file = bundle / "results" / "raw" / name
    file.write_text(f"{file.read_text(encoding='utf-8')}# changed\n", encoding="utf-8")
    assert f"results/raw/{name}: is not what the run left: another SHA-256" in extract_again(bundle).problems
    forged(bundle, "", "")
    assert extract_again(bundle).problems == [f"results/raw/{name}: is not what the tool said"]
    file.unlink()
    forged(bundle, "", "")
    assert extract_again(bundle).problems == [f"results/raw/{name}: is not what the tool said"]


def test_a_job_file_that_was_edited_in_the_checkout_does_not_fit_a_bundle_of_another(
    bundle_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, edited = bundle_of("block_scan"), tmp_path / "fio"
    shutil.copytree(LAYOUT.fio_jobs, edited)
    monkeypatch.setattr(Layout, "fio_jobs", edited)
    assert extract_again(bundle).problems == []
    job = edited / "block-scan.fio"
    job.write_text(job.read_text(encoding="utf-8").replace("overwrite=1", "overwrite=0"), encoding="utf-8")
    (problem, *_) = extract_again(bundle).problems
    assert "/block-scan.fio" in problem and "another version of the bench made this bundle" in problem


def test_repetitions_that_were_swapped_are_named(bundle_of: Make) -> None:
    bundle = bundle_of("snb_record")
    first, second = (bundle / "results" / "raw" / f"minidaq-{number}.json" for number in (1, 2))
    texts = first.read_bytes(), second.read_bytes()
    first.write_bytes(texts[1])
    second.write_bytes(texts[0])
    problems = extract_again(bundle).problems
    assert {text.partition(":")[0] for text in problems} >= {f"results/raw/{one.name}" for one in (first, second)}


def test_a_scenario_that_asks_for_another_load_is_not_what_was_run(bundle_of: Make) -> None:
    bundle = bundle_of("snb_record")
    file = bundle / "profiles" / "scenarios" / "snb-emulated.yml"
    file.write_text(file.read_text(encoding="utf-8").replace("links: 10", "links: 20"), encoding="utf-8")
    (problem,) = extract_again(bundle).problems
    assert "the run never did this, which its scenario asks for: run " in problem
    assert "--links=20" in problem


def test_a_repetition_that_was_left_out_is_named(bundle_of: Make) -> None:
    """A bad record, taken out of the result and of the scenario: the journal has it."""
    bundle = bundle_of("snb_record")
    file = bundle / "profiles" / "scenarios" / "snb-emulated.yml"
    file.write_text(file.read_text(encoding="utf-8").replace("repetitions: 2", "repetitions: 1"), encoding="utf-8")
    assert any("snb_record.json" in text for text in extract_again(bundle).problems)


def test_a_bundle_of_an_older_bench_is_noted_and_a_journal_that_was_taken_away_is_a_problem(bundle_of: Make) -> None:
    bundle = bundle_of("block_scan")
    (bundle / JOURNAL).unlink()
    found = extract_again(bundle)
    assert found.problems == []
    assert found.notes == [
        "results/block_scan.json: cannot be extracted again: made by an older bench, which kept no journal"
    ]


def test_a_journal_without_an_end_is_a_problem_of_a_run_that_finished(bundle_of: Make) -> None:
    bundle = bundle_of("block_scan")
    lines = (bundle / JOURNAL).read_text(encoding="utf-8").splitlines()
    (bundle / JOURNAL).write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    assert any("its journal has no end" in text for text in extract_again(bundle).problems)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON\n",
        "[]\n",
        "null\n",
        '{"at": "", "do": "run", "words": []}\n',
        '{"at": "", "do": "begin", "words": [1]}\n',
    ],
)
def test_a_journal_that_is_none_is_a_problem(bundle_of: Make, text: str) -> None:
    bundle = bundle_of("block_scan")
    (bundle / JOURNAL).write_text(text, encoding="utf-8")
    (problem,) = extract_again(bundle).problems
    assert "block_scan-journal.jsonl" in problem and ("cannot be read" in problem or "is not valid JSON" in problem)


@pytest.mark.parametrize("make", [lambda file: os.mkfifo(file), lambda file: file.symlink_to("/dev/zero"), Path.mkdir])
def test_a_journal_or_a_raw_file_that_is_no_plain_file_does_not_hang(
    bundle_of: Make, make: Callable[[Path], None]
) -> None:
    bundle = bundle_of("block_scan")
    raw = bundle / "results" / "raw" / "daqwriter-write-65536.json"
    raw.unlink()
    make(raw)
    assert "results/raw/daqwriter-write-65536.json: missing, or no plain file" in extract_again(bundle).problems
    (bundle / JOURNAL).unlink()
    make(bundle / JOURNAL)
    assert any("cannot be opened as a plain file" in text for text in extract_again(bundle).problems)


@pytest.mark.parametrize("name", ["../../escaped.json", "/tmp/escaped.json", "fio-65536_bw.1.log/../x"])
def test_a_journal_cannot_name_a_file_elsewhere(bundle_of: Make, name: str) -> None:
    bundle = bundle_of("block_scan")
    lines = [json.loads(line) for line in (bundle / JOURNAL).read_text(encoding="utf-8").splitlines()]
    changed = [{**line, "file": name} if line["do"] == "fetch" else line for line in lines]
    changed[-1]["files"] |= {name: "0" * 64}
    (bundle / JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in changed), encoding="utf-8")
    problems = extract_again(bundle).problems
    assert any(f"was fetched as {name}" in text for text in problems)
    assert any(text.startswith(f"results/raw/{name}: ") for text in problems)


def test_check_bundle_extracts_again_after_everything_was_sealed_anew(bundle_of: Make) -> None:
    bundle = bundle_of("block_scan")
    seal_evidence(bundle)
    assert any(
        line.startswith("results    extracted again: results/block_scan.json") for line in check_bundle(bundle).lines
    )
    file = bundle / "results" / "block_scan.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    stored["points"][0]["throughput_bytes_per_s"] *= 2
    file.write_text(json.dumps(stored), encoding="utf-8")
    seal_evidence(bundle)
    named = "results/block_scan.json: points[0].throughput_bytes_per_s is "
    assert any(text.startswith(named) for text in check_bundle(bundle).problems)


def test_a_journal_gives_each_answer_once_and_errors_as_they_were(tmp_path: Path) -> None:
    with recorded(LocalMachine(), tmp_path, "x") as machine:
        assert machine.run(["echo", "1"], 10).stdout == "1\n"
        assert machine.run(["sh", "-c", "echo 2 >&2; exit 3"], 10).returncode == 3
        assert machine.observe("the time", lambda: (1, 2)) == [1, 2]
        with pytest.raises(BenchError):
            machine.read_text(Path("/nowhere"))
        with pytest.raises(InterruptedRunError):
            machine.observe("a stop", interrupted)
        assert machine.observe("nested", lambda: machine.run(["echo", "no line"], 10).stdout) == "no line\n"
    lines = read_journal(tmp_path, "x")
    assert lines is not None
    assert [line["do"] for line in lines] == ["begin", "run", "run", "observe", "read", "observe", "observe", "end"]
    again = Replay(Answers(lines[1:-1], tmp_path), local=True)
    assert again.run(["sh", "-c", "echo 2 >&2; exit 3"], 10) == Completed(
        ("sh", "-c", "echo 2 >&2; exit 3"), 3, "", "2\n"
    )
    with pytest.raises(DivergedError, match="the run never did this"):
        again.run(["sh", "-c", "echo 2 >&2; exit 3"], 10)
    with pytest.raises(BenchError, match="/nowhere"):
        again.read_text(Path("/nowhere"))
    with pytest.raises(InterruptedRunError):
        again.observe("a stop", lambda: pytest.fail("nothing is done again"))


def interrupted() -> None:
    raise InterruptedRunError("stopped")


def test_programs_of_the_bench_are_kept_by_name(tmp_path: Path) -> None:
    """Their text is the bench's: another version of it asks the same."""
    file = tmp_path / "x.jsonl"
    machine = Recording(LocalMachine(), file)
    argv = machine.program("cpu_topology")
    machine.run(argv, 60)
    machine.run(["echo", json.dumps({"argv": argv})], 60)
    words = [json.loads(line)["words"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert words == [["program cpu_topology"], ["echo", '{"argv": ["program cpu_topology"]}']]


@pytest.mark.parametrize(
    ("status", "code"), [("complete", 1), ("failed", 0), ("intact", 3), ("interrupted", 0), ("", 0)]
)
def test_a_document_that_contradicts_its_tools_exit_status_is_not_used(status: str, code: int) -> None:
    recorded = answer(Minidaq, OF_THE_RIG / "minidaq.json")
    said = structs.replace(recorded, status=status)  # also a word that no reader would take
    with pytest.raises(
        BenchError, match=f"daqwriter minidaq ended with exit status {code}, but its document says '{status}'"
    ):
        agreeing(said, Completed(("daqwriter",), code, "", "EIO"))


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_load_of_the_hot_store_that_did_not_complete_gives_no_value(tmp_path: Path, status: str) -> None:
    said = answer(HotstoreBench, RECORDED / "hotstore-bench.json", status=status, error="EIO")
    (tmp_path / "x.json").write_text(json.dumps(as_document(said)), encoding="utf-8")
    tools = hot_store_plans.Tools(Path("hotstore"), tmp_path, tmp_path)
    site = hot_store.HotSite(LocalMachine(), tools, tmp_path, tmp_path, tmp_path)
    with pytest.raises(BenchError, match=rf"hotstore bench \(x\) ended as {status}: EIO"):
        site.keep("x")
