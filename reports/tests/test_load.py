"""Reading bundles: missing parts are said, broken ones are refused by file and field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_report.figures.host import host_figure
from daq_bench.bench_report.figures.record import record_figures
from daq_bench.bench_report.reading.dataset.record import series_of
from daq_bench.bench_report.reading.dataset.telemetry import ALL_CPUS
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.reading.load_smart import _readings

Maker = Callable[..., Path]


def change(root: Path, name: str, edit: Callable[[dict], object]) -> None:  # type: ignore[type-arg]  # any JSON object
    document = json.loads((root / name).read_text(encoding="utf-8"))
    edit(document)
    (root / name).write_text(json.dumps(document), encoding="utf-8")


def test_a_complete_bundle_reads(bundle_with: Maker) -> None:
    bundle = load(bundle_with())
    assert bundle.missing == ()
    assert [phase.name for phase in bundle.phases] == ["identity", "block scan", "record", "read-back"]
    assert bundle.host is not None and set(bundle.host.cpu_percent) == {"CPU 0", "CPU 1"}
    assert bundle.host.disk_write_bytes_per_s["vda"][1][5] > 1e9


def test_cpu_times_of_all_cpus_together_are_drawn_where_those_of_each_are_not_known(bundle_with: Maker) -> None:
    root = bundle_with()
    file = root / "telemetry/points.lp"
    text = file.read_text(encoding="utf-8").replace("cpu,core=0 ", "cpu,core=total ")
    file.write_text(
        "".join(line for line in text.splitlines(keepends=True) if "cpu,core=1 " not in line), encoding="utf-8"
    )
    bundle = load(root)
    assert bundle.host is not None and list(bundle.host.cpu_percent) == [ALL_CPUS]
    figure = host_figure(bundle)
    assert figure is not None and figure.see.startswith("All CPUs were busy ")
    assert any(one.panel == "All CPUs, share of time" for one in figure.data)


def test_the_account_of_the_bmcs_own_agent_stands_beside_the_candidates(bundle_with: Maker) -> None:
    root = bundle_with()
    before = load(root).accounting
    document = json.loads((root / "telemetry/summary.json").read_text(encoding="utf-8"))
    (root / "telemetry/bmc").mkdir()
    lan = {**document["collectors"][0], "name": "ipmi_lan", "status": "failing", "detail": "no answer"}
    (root / "telemetry/bmc/summary.json").write_text(
        json.dumps({**document, "collectors": [lan, document["collectors"][0]]}), encoding="utf-8"
    )
    after = load(root).accounting
    assert before is not None and after is not None
    assert [one.name for one in after.collectors] == [*(one.name for one in before.collectors), "ipmi_lan"]
    assert (after.collectors[-1].status, after.collectors[-1].detail) == ("failing", "no answer")
    assert after.counts == before.counts


def test_a_splinter_of_an_interval_is_joined_to_the_one_before(bundle_with: Maker) -> None:
    """The writer's last interval can be a millisecond long; a rate over it would be a spike that never was."""
    root = bundle_with()

    def splinter(document: dict) -> None:  # type: ignore[type-arg]  # any JSON object
        document["repetitions"][0]["minidaq"]["series"] = {
            "interval_s": 0.1,
            "t_s": [0.1, 0.2, 0.3, 0.301],
            "offered_bytes": [100, 100, 100, 0],
            "stored_bytes": [90, 100, 100, 10],
            "backlog_bytes": [10, 10, 10, 0],
        }

    change(root, "results/snb_record.json", splinter)
    series = series_of(load(root).repetitions[0].minidaq.series, 1)
    assert series.t_s == (0.1, 0.2, 0.301)
    assert max(series.stored_bytes_per_s) == pytest.approx(110 / 0.101)
    assert series.backlog_bytes == (10, 10, 0)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda series: series["t_s"].pop(), r"repetitions\[0\]\.minidaq\.series: \d+ values for \d+ times"),
        (lambda series: series["t_s"].reverse(), r"series\.t_s: times must increase"),
    ],
)
def test_a_series_that_does_not_fit_is_named(
    bundle_with: Maker,
    edit: Callable[[dict], object],  # type: ignore[type-arg]  # any JSON object
    message: str,
) -> None:
    root = bundle_with()
    change(root, "results/snb_record.json", lambda d: edit(d["repetitions"][0]["minidaq"]["series"]))
    with pytest.raises(BenchError, match=message):
        record_figures(load(root))


def test_a_folder_that_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"is no run bundle \(run\.json is missing\)"):
        load(tmp_path)
    with pytest.raises(BenchError, match="there is no such folder"):
        load(tmp_path / "absent")


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("run.json", lambda d: d.pop("run_id"), r"run\.json: .*missing required field `run_id`"),
        ("run.json", lambda d: d.update(state="lost"), r"run\.json: state: Invalid enum value 'lost'"),
        ("run.json", lambda d: d.update(started_utc="yesterday"), r"started_utc: Expected `str` matching regex .*: 'yesterday'"),
        ("run.json", lambda d: d["demand"].update(real_bytes_per_s="fast"), r"demand\.real_bytes_per_s: Expected `float`, got `str`: 'f"),
        ("results/block_scan.json", lambda d: d["points"][0].update(block_bytes=0), r"points\[0\]\.block_bytes: Expected `int` >= 512"),
        ("results/block_scan.json", lambda d: d["points"][3].pop("admissible"), r"points\[3\]: Object missing required field `admissible`"),
        ("results/snb_record.json", lambda d: d["repetitions"][0]["minidaq"]["busy"].update(count=True),
        r"busy\.count: Expected `int`, got `bool`"),
        ("facts/tuning.json", lambda d: d.pop("settings"), r"facts/tuning\.json: .*missing required field `settings`"),
        ("run.json", lambda d: d.update(schema_version=9), r"run\.json: a newer bench wrote it \(schema_version 9; "),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(bundle_with: Maker, name: str, edit: Callable[[dict], object], message: str) -> None:  # type: ignore[type-arg]  # any JSON object
    root = bundle_with()
    change(root, name, edit)
    with pytest.raises(BenchError, match=message):
        load(root)


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda d: d.update(outcome="REVIEW"), "outcome"),
        (lambda d: d["requirements"][2].update(measured="1"), "measured"),
        (lambda d: d["requirements"][2].pop("length_factor"), "length_factor"),  # a verdict of an older bench
        (lambda d: d.update(requirements=None), "row"),
    ],
)
def test_a_stored_verdict_that_is_no_verdict_of_this_bench_is_contradicted_by_field(
    bundle_with: Maker,
    edit: Callable[[dict], object],  # type: ignore[type-arg]  # any JSON object
    field: str,
) -> None:
    root = bundle_with()
    change(root, "verdict.json", edit)
    again = load(root).again
    assert again is not None and again.contradicts
    assert any(field in f"{one.field} {one.recomputed}" for one in again.differences)


@pytest.mark.parametrize(
    "name", ["verdict.json", "results/snb_record.json", "facts/tuning.json", "telemetry/summary.json"]
)
def test_a_cut_file_is_named_with_its_line(bundle_with: Maker, name: str) -> None:
    root = bundle_with()
    text = (root / name).read_text(encoding="utf-8")
    (root / name).write_text(text[: len(text) // 2], encoding="utf-8")
    with pytest.raises(BenchError, match=rf"{name} is not valid JSON \(.*: line \d+"):
        load(root)


def test_not_a_number_is_not_a_measurement(bundle_with: Maker) -> None:
    root = bundle_with()
    text = (root / "verdict.json").read_text(encoding="utf-8").replace('"measured": 0', '"measured": NaN', 1)
    (root / "verdict.json").write_text(text, encoding="utf-8")
    with pytest.raises(BenchError, match=r"verdict\.json is not valid JSON \(NaN"):
        load(root)


def test_a_broken_event_is_named_and_a_torn_last_one_is_not_an_error(bundle_with: Maker) -> None:
    root = bundle_with()
    events = root / "events.jsonl"
    whole = events.read_text(encoding="utf-8")
    events.write_text(whole + '{"time_utc": "2026', encoding="utf-8")
    assert len(load(root).events) == whole.count("\n")
    events.write_text(whole + '{"time_utc": "2026\n', encoding="utf-8")
    with pytest.raises(BenchError, match=rf"events\.jsonl:{whole.count(chr(10)) + 1} is not valid JSON"):
        load(root)


def test_an_interrupted_run_keeps_the_writers_live_records(bundle_with: Maker) -> None:
    bundle = load(bundle_with(interrupted=True))
    assert bundle.verdict is None and bundle.repetitions == ()
    assert bundle.live_series is not None and max(bundle.live_series.stored_bytes_per_s) > 1e8
    assert "results/snb_record.json" in dict(bundle.missing)


@pytest.mark.parametrize("bit", [0, 255])
def test_a_health_page_of_one_bit_gives_the_report_no_readings(bit: int) -> None:
    """The agent, the wear and the nights read nothing of it either (candidate_kit.plausible)."""
    log = {"critical_warning": bit, "available_spare": bit, "percentage_used": bit, "data_units_written": bit}
    document = {"model_name": "X", "power_on_time": {"hours": 0}, "temperature": {"current": 0}}
    assert dict(_readings({**document, "nvme_smart_health_information_log": log})) == {"model_name": "X"}
    sound = {**document, "nvme_smart_health_information_log": {"available_spare": 100}, "power_on_time": {"hours": 7}}
    assert dict(_readings(sound)) == {"model_name": "X", "power_on_hours": 7.0, "available_spare": 100.0}
