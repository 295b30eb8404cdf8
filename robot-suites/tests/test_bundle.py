"""The run bundle: files appear whole, events are appended, and a change after the run is noticed."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.bundle.line_protocol import parse_line
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.checking.sealing import altered_evidence, seal_evidence
from daq_bench.rig.telemetry.history import event_lines


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    made = Bundle.create(tmp_path / "runs", "this-machine", "", "dune-snb")
    made.begin(some_run())
    return made


def test_latest_points_to_the_newest_run(bundle: Bundle) -> None:
    assert (bundle.path.parent / "latest").resolve() == bundle.path
    assert Bundle.open(bundle.path.parent / "latest").id == bundle.id


def test_events_are_kept_as_json_and_as_line_protocol(bundle: Bundle) -> None:
    bundle.event("busy", "snb_record", 'Dataflow is BUSY, "again"', duration_s=0.25)
    event = bundle.events()[0]
    assert (event.kind, event.data) == ("busy", {"duration_s": 0.25})
    point = parse_line(bundle.workload_file.read_text(encoding="utf-8").strip())
    assert point.measurement == "bench_event"
    assert point.tags == {"kind": "busy", "source": "snb_record", "run": bundle.id}
    assert point.fields == {"text": 'Dataflow is BUSY, "again"'}


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n", "\x0b", "\x85", "\u2028"])
def test_whatever_ends_a_line_ends_none_of_an_event(bundle: Bundle, end: str) -> None:
    """ssh ends its lines with CR LF: the half of such an event made InfluxDB refuse the verdict, and whatever stood beside it."""
    bundle.event(
        "error", f"clean{end}up", f"Connection timed out during banner exchange{end}Connection to server timed out"
    )
    (line,) = event_lines(bundle)
    assert line.splitlines() == [line]
    assert (
        parse_line(line).fields["text"] == "Connection timed out during banner exchange Connection to server timed out"
    )


def test_an_event_that_an_older_bench_stored_with_a_cr_is_one_point(bundle: Bundle) -> None:
    head = f"bench_event,kind=error,source=clean-up,run={bundle.id}"
    bundle.workload_file.write_bytes(f'{head} text="one\r two" 1\n{head} text="three" 2\n'.encode())
    assert [parse_line(line).fields["text"] for line in event_lines(bundle)] == ["one  two", "three"]


def test_a_failed_write_leaves_the_old_content_and_no_rest(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="nan"):
        bundle.write("run.json", {"rate": float("nan")})
    assert Bundle.open(bundle.path).run == some_run()
    assert [path.name for path in bundle.path.iterdir() if path.name.startswith(".")] == []


def test_a_disk_that_fills_is_told_with_the_file_and_leaves_no_rest(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, mode: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(bundle.path.iterdir())
    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*run\.json'"):
        bundle.write("run.json", {"rate": 1.0})
    assert sorted(bundle.path.iterdir()) == before
    assert Bundle.open(bundle.path).run == some_run()


def test_a_sealed_bundle_notices_every_change_but_the_delivery_to_influxdb(bundle: Bundle) -> None:
    bundle.write("results/a.json", {"a": 1})
    bundle.write("results/b.json", {"b": 1})
    seal_evidence(bundle.path)
    (bundle.path / "telemetry" / "cursor.json").write_text("{}", encoding="utf-8")
    assert altered_evidence(bundle.path) == []
    bundle.write("results/a.json", {"a": 2})
    (bundle.path / "results" / "b.json").unlink()
    bundle.write("results/c.json", {})
    assert [change.name for change in altered_evidence(bundle.path)] == [
        "results/a.json",
        "results/b.json",
        "results/c.json",
    ]


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"is no run bundle .* Name one: runs/<run-id>"):
        Bundle.open(tmp_path)


def test_a_second_run_in_one_second_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    def began() -> datetime:
        return datetime(2026, 11, 29, 2, 0, 0, tzinfo=UTC)

    first = Bundle.create(tmp_path, "server-a", "", "snb-100s", began)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RefusedError, match=f"{first.id} is another run, which began in this very second. Begin again"):
        Bundle.create(tmp_path, "server-a", "", "snb-100s", began)
    assert sorted(tmp_path.rglob("*")) == before
