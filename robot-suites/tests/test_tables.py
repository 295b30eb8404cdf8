"""A run's numbers as tables: what a spreadsheet reads is what the bundle stores, and a bundle is only read."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "inventory" / "tests"))
from evidence_factory import seal
from nights_factory import NightPlan, write_night

from daq_bench import Bundle
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.admission import Admission
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.checking.tables import write_tables
from daq_bench.rig.cli import main

PAGE = Layout().repository / "docs" / "reading-a-bundle.md"
NS = 1_795_428_009_447_467_552
POINTS = [
    f"block_device,device=nvme0n1,host=a\\ host,serial=0012 write_latency_s=0.25,written_bytes=12345678901234567i {NS}",
    f"block_device,device=nvme0n1,host=a\\ host write_latency_s=0.1 {NS + 10**9}",
    f'bench_event,kind=phase text="a, \\"quoted\\" text",done=true {NS}',
]
SERIES = {"t_s": [0.1, 0.2], "stored_bytes": [1, 2**60], "p99": 3.5}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A sealed run with telemetry of two measurements and a series; the last point was being written when it ended."""
    made = write_night(tmp_path / "runs", NightPlan(1))
    (made / "telemetry" / "points.lp").write_text("\n".join(POINTS) + "\nblock_device,device=n", encoding="utf-8")
    record = {"repetitions": [{"series": SERIES, "lost": 0, "none": None, "is": True, "share": 0.1}]}
    (made / "results" / "record.json").write_text(json.dumps(record), encoding="utf-8")
    seal(made)
    return made


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def content(folder: Path) -> dict[str, str]:
    return {
        str(one.relative_to(folder)): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in folder.rglob("*")
        if one.is_file()
    }


def test_the_tables_hold_what_the_bundle_stores(bundle: Path, tmp_path: Path) -> None:
    before = content(bundle)
    files = write_tables(bundle, tmp_path / "out")
    assert content(bundle) == before
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == sorted(files)
    verdict = json.loads((bundle / "verdict.json").read_text(encoding="utf-8"))
    judged = rows(tmp_path / "out" / "requirements.csv")
    assert [one["id"] for one in judged] == [one["id"] for one in verdict["requirements"]]
    for row, stored in zip(judged, verdict["requirements"], strict=True):
        assert float(row["measured"]) == stored["measured"]
        assert row["outcome"] == stored["outcome"]
    telemetry = rows(tmp_path / "out" / "telemetry-block_device.csv")
    assert [one["write_latency_s"] for one in telemetry] == ["0.25", "0.1"]
    assert [one["written_bytes"] for one in telemetry] == ["12345678901234567", ""]  # all digits; not measured is empty
    assert telemetry[0]["host"] == "a host"
    assert (telemetry[0]["time_ns"], telemetry[0]["time"][-11:]) == (str(NS), ".447467552Z"[-11:])
    (event,) = rows(tmp_path / "out" / "telemetry-bench_event.csv")
    assert (event["text"], event["done"]) == ('a, "quoted" text', "true")
    assert rows(tmp_path / "out" / "series.csv") == [
        {"document": "record", "series": "repetitions[0].series", "t_s": "0.1", "stored_bytes": "1"},
        {"document": "record", "series": "repetitions[0].series", "t_s": "0.2", "stored_bytes": str(2**60)},
    ]
    numbers = {
        one["field"]: one["value"] for one in rows(tmp_path / "out" / "results.csv") if one["document"] == "record"
    }
    assert numbers == {"repetitions[0].lost": "0", "repetitions[0].share": "0.1"}


def test_it_says_whether_the_run_counts(bundle: Path, tmp_path: Path) -> None:
    write_tables(bundle, tmp_path / "sound")
    about = json.loads((tmp_path / "sound" / "about.json").read_text(encoding="utf-8"))
    assert (about["standing"], about["outcome"], about["candidate"]) == ("sealed", "PASS", "server-a")
    (bundle / "results" / "record.json").write_text("{}", encoding="utf-8")
    write_tables(bundle, tmp_path / "altered")
    about = json.loads((tmp_path / "altered" / "about.json").read_text(encoding="utf-8"))
    assert about["standing"] == "altered" and about["outcome"] is None
    assert "results/record.json" in about["reason"]


def test_a_hostile_name_or_text_harms_nobody(bundle: Path, tmp_path: Path) -> None:
    evil = f'../../evil,tag=\x1b[2J text="a\x07b" {NS}\n'
    (bundle / "telemetry" / "points.lp").write_text(evil, encoding="utf-8")
    files = write_tables(bundle, tmp_path / "out")
    assert "telemetry-measurement-0.csv" in files
    assert not (tmp_path / "evil.csv").exists() and not (tmp_path.parent / "evil.csv").exists()
    assert b"\x1b" not in (tmp_path / "out" / "telemetry-measurement-0.csv").read_bytes()


@pytest.mark.parametrize("what", ["a line", "a link", "not JSON", "no run"])
def test_a_damaged_bundle_leaves_no_folder(bundle: Path, tmp_path: Path, what: str) -> None:
    if what == "a line":
        (bundle / "telemetry" / "points.lp").write_text("cpu busy=NaN 1\n", encoding="utf-8")
    elif what == "a link":
        (bundle / "results" / "more.json").symlink_to("/etc/passwd")
    elif what == "not JSON":
        (bundle / "results" / "record.json").write_text('{"a": NaN}', encoding="utf-8")
    else:
        (bundle / "run.json").unlink()
    with pytest.raises(BenchError):
        write_tables(bundle, tmp_path / "out")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["runs"]


def test_nothing_is_overwritten_and_no_bundle_written_into(bundle: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes").touch()
    (tmp_path / "link").symlink_to(mine)
    for out in (mine, bundle / "tables", bundle, tmp_path / "link", mine / "notes"):
        with pytest.raises(BenchError, match="--output"):
            write_tables(bundle, out)
    assert [one.name for one in mine.iterdir()] == ["notes"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert write_tables(bundle, empty)


def test_a_table_without_rows_has_its_heads(tmp_path: Path) -> None:
    bundle = write_night(tmp_path / "runs", NightPlan(1))
    write_tables(bundle, tmp_path / "out")
    assert (tmp_path / "out" / "series.csv").read_text(encoding="utf-8") == "document,series,t_s\n"


def test_parquet_is_the_same_table_or_one_clear_sentence(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        from pyarrow import parquet  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        assert main(["tables", str(bundle), "--output", str(tmp_path / "out"), "--format", "parquet"]) == 2
        said = capsys.readouterr().err
        assert "needs pyarrow" in said and "pip install pyarrow" in said
        assert not (tmp_path / "out").exists()
        return
    write_tables(bundle, tmp_path / "out", "parquet")
    table: Any = parquet.read_table(tmp_path / "out" / "telemetry-block_device.parquet").to_pydict()
    assert table["serial"] == ["0012", None]  # digits alone, and text all the same
    assert table["write_latency_s"] == [0.25, 0.1]
    assert table["written_bytes"] == [12345678901234567, None]


def test_every_example_of_the_page_runs(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a reader would, in a folder with runs/latest; in this process, which alone knows the made-up metrics of the bundle."""
    (tmp_path / "runs" / "latest").symlink_to(bundle.name)
    write_tables(tmp_path / "runs" / "latest", tmp_path / "my-tables")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    said = []
    for one in examples:
        exec(compile(one, str(PAGE), "exec"), {})
        said.append(capsys.readouterr().out)
    assert len(said) == 5
    assert "PASS: " in said[0] and "sealed" in said[0] and "R-01 met" in said[0]
    assert [line.split()[1] for line in said[1].splitlines()] == ["0.25", "0.1"]
    assert said[2].startswith("PASS") and "R-01 met" in said[2]
    assert said[3].startswith("sealed") and "R-01 met" in said[3]
    assert said[4].split()[1:] == ["nvme0n1", "0.25"]
    assert len([line for line in examples[2].splitlines() if line]) <= 10


def test_every_cell_of_the_notebook_runs(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after another in one namespace, as a notebook does."""
    (tmp_path / "runs" / "latest").symlink_to(bundle.name)
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(PAGE.with_suffix(".ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], {tuple(cell["outputs"]) for cell in notebook["cells"] if "outputs" in cell}) == (
        4,
        {()},
    )
    names: dict[str, Any] = {}
    said = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            said.append(capsys.readouterr().out)
    assert said[0].splitlines()[0].startswith("PASS: ") and said[0].splitlines()[1] == "sealed"
    assert "R-01" in said[1] and "met" in said[1]
    assert "phase" in said[2] or said[2] == ""
    assert said[3].splitlines()[0].startswith("2 points; time, device, host, serial, write_latency_s")
    assert said[3].splitlines()[1] == "slowest write of an interval, s: 0.25"


def test_the_reader_has_types_and_names_what_there_is(bundle: Path, tmp_path: Path) -> None:
    found = Bundle(bundle)
    assert (
        repr(found)
        == f"<Bundle {found.run.run_id}: {found.run.candidate.name}, scenario {found.run.scenario.id}, finished>"
    )
    assert (
        found.run.scenario.scale == json.loads((bundle / "run.json").read_text(encoding="utf-8"))["scenario"]["scale"]
    )
    assert found.verdict.outcome == "PASS" and found.requirement("R-01").decision == "met"
    for broken, said in (
        (lambda: found.requirement("R-99"), "no requirement 'R-99'; there are R-01"),
        (lambda: found.document("nothing"), "no result 'nothing'; there are "),
        (lambda: found.result("record"), "has no type: read it with document"),
        (lambda: found.telemetry("block_device")["nothing"], "no column 'nothing'; there are time, device"),
    ):
        with pytest.raises(KeyError, match=re.escape(said)):
            broken()
    assert len(found.telemetry("no_such_measurement")) == 0
    assert found.document("record")["repetitions"][0]["series"] == SERIES
    with pytest.raises(BenchError, match="no run bundle"):
        Bundle(tmp_path / "nowhere")
    (bundle / "results" / "cost.json").write_text('{"schema_version": 1}', encoding="utf-8")
    with pytest.raises(BenchError, match=r"results/cost\.json"):
        found.result("cost")
    assert Bundle(bundle).standing.startswith("altered: was altered since it was sealed")
    (bundle / "results" / "link.json").symlink_to("/etc/passwd")
    with pytest.raises(BenchError, match="is a link or a special file"):
        Bundle(bundle)


WRONG = [("as a number", 7), ("as a text", "x"), ("as a list", []), ("as null", None)]


def wrong_runs(run: dict[str, Any]) -> list[tuple[str, Any]]:
    """run.json without each of its keys, and with each of another type; and documents that are no account of a run."""
    found: list[tuple[str, Any]] = [
        ("nothing", {}),
        ("another version", {"schema_version": "one"}),
        ("a list", []),
        ("null", None),
    ]
    for key in run:
        found.append((f"without {key}", {name: value for name, value in run.items() if name != key}))
        found += [(f"{key} {what}", {**run, key: value}) for what, value in WRONG]
    return found


@pytest.mark.parametrize("command", ["judge", "tables"])
def test_a_wrong_account_of_a_run_never_ends_as_a_fail_does(
    command: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1 says FAIL: an account that cannot be read has 2, or the verdict of evidence that does not count, 3."""
    monkeypatch.setattr("daq_bench.rig.cli.bundles.admit", lambda runs, _: [Admission(str(runs[0]), "trusted")])
    words = [command, str(bundle), *(["--output", str(tmp_path / "tables")] if command == "tables" else [])]
    for what, run in wrong_runs(json.loads((bundle / "run.json").read_text(encoding="utf-8"))):
        (bundle / "run.json").write_text(json.dumps(run), encoding="utf-8")
        status = main(words)
        said = capsys.readouterr().err
        assert "Traceback" not in said, (what, said)
        assert status in (0, 2, 3), (what, status, said)
        shutil.rmtree(tmp_path / "tables", ignore_errors=True)


def test_a_fault_of_the_bench_itself_is_an_error_and_no_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], bundle: Path
) -> None:
    def trips(_: Path) -> None:
        raise KeyError("\x1b[2Jrequirement")

    monkeypatch.setattr("daq_bench.rig.cli.bundles.judge_bundle", trips)
    assert main(["judge", str(bundle), "--json"]) == 2
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("error: the bench has a fault: KeyError: ")
    assert "\x1b" not in said.err
    assert "the bench has a fault" in json.loads(said.out)["error"]


READS_RUNS = ["judge", "check-bundle", "tables", "admit", "report", "compare", "trend"]


@pytest.mark.parametrize(
    ("command", "file"),
    [(one, "run.json") for one in READS_RUNS] + [(one, "verdict.json") for one in ("check-bundle", "compare", "trend")],
)
def test_a_bundle_of_a_newer_bench_is_told_as_such(
    command: str, file: str, bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its other fields are new, too."""
    document = json.loads((bundle / file).read_text(encoding="utf-8"))
    (bundle / file).write_text(json.dumps({**document, "schema_version": 99, "colour": "red"}), encoding="utf-8")
    seal(bundle)
    more = {"tables": ["--output", str(tmp_path / "out")], "trend": ["--candidate", "server-a"]}
    status = main([command, *more.get(command, []), str(bundle)])
    said = "".join(capfd.readouterr())
    assert status == (1 if command == "admit" or (command, file) == ("check-bundle", "verdict.json") else 2)
    assert f"{file}: a newer bench wrote it (schema_version 99; this bench reads up to 1). Update this bench" in said
    assert "enum value" not in said


def test_an_empty_name_is_no_bundle(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a path it would be the working folder, here a bundle."""
    monkeypatch.chdir(bundle)
    with pytest.raises(BenchError, match=r"the name of the run bundle is empty. Name one such as runs/latest"):
        Bundle("")
    assert Bundle(".").path == bundle.resolve()


def test_a_link_to_itself_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BenchError, match="loop is no run bundle"):
        Bundle(tmp_path / "loop")
