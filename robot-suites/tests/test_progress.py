"""The live display: time left follows the plan, rates follow the workload's own records."""

import io
import time
from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import drive, some_run, target
from rich.console import Console

from daq_bench.bench_model.bundle.files import TAIL_BYTES, last_lines
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.run.progress import Observer, Plan, ProgressDisplay


class Clock:
    """A clock that stands until it is told to go."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def plan(clock: Clock) -> Plan:
    return Plan([("identity", 2.0), ("block_scan", 60.0), ("snb_record", 40.0)], clock)


def test_time_left_is_the_rest_of_this_phase_and_all_later_ones(plan: Plan, clock: Clock) -> None:
    assert plan.left_s() == 102.0
    plan.begin("identity")
    clock.now += 1
    assert plan.left_s() == 101.0
    plan.begin("block_scan")
    clock.now += 20
    assert (plan.current(), plan.left_s(), plan.elapsed_s()) == ("block_scan", 80.0, 21.0)


def test_a_phase_that_takes_longer_than_planned_does_not_go_negative(plan: Plan, clock: Clock) -> None:
    plan.begin("snb_record")
    clock.now += 400
    assert plan.left_s() == 62.0  # the two phases that never began


def record(offered: int, stored: int, moment_ns: int) -> str:
    fields = f"offered_bytes={offered}i,stored_bytes={stored}i,backlog_bytes={offered - stored}i,busy_count=1i,lost_superchunks=3i"
    return f"daqwriter,command=minidaq,phase=record {fields},elapsed_s=1.0,total_s=20.0 {moment_ns}\n"


def test_rates_come_from_the_last_second_of_the_workloads_records(tmp_path: Path, plan: Plan) -> None:
    bundle = Bundle.create(tmp_path, "c", "", "s")
    bundle.begin(some_run(target=target(device=drive("vda"))))
    bundle.event("phase", "snb_record", "record 1 of 1", step=1, steps=1, expected_s=20)
    now = time.time_ns()
    lines = [record(i * 10**8, i * 9 * 10**7, now - (20 - i) * 10**8) for i in range(1, 21)]
    bundle.workload_file.write_text("".join(lines) + "daqwriter,command=mini", encoding="utf-8")
    shown = Observer(bundle, plan).snapshot()
    assert shown.phase == "snb_record"
    assert shown.rates == {"offered": pytest.approx(1e9), "stored": pytest.approx(0.9e9)}
    assert (shown.backlog_bytes, shown.busy, shown.lost) == (2 * 10**8, 1, 3)
    assert (
        "offered 1.000 GB/s | stored 0.900 GB/s | backlog 200.0 MB | BUSY 1 times | 3 superchunks LOST" in shown.line()
    )


def test_records_of_the_storage_application_tell_of_no_losses(tmp_path: Path, plan: Plan) -> None:
    bundle = Bundle.create(tmp_path, "c", "", "s")
    bundle.begin(some_run(target=target(device=drive("vda"))))
    bundle.event("phase", "snb_record", "the peak rate", step=1, steps=1, expected_s=20)
    now = time.time_ns()
    lines = [record(i * 10**8, i * 9 * 10**7, now - (20 - i) * 10**8) for i in range(1, 21)]
    text = "".join(lines).replace(",busy_count=1i,lost_superchunks=3i", "")
    bundle.workload_file.write_text(text, encoding="utf-8")
    shown = Observer(bundle, plan).snapshot()
    assert (shown.backlog_bytes, shown.busy, shown.lost) == (2 * 10**8, None, None)


def test_during_the_scan_the_drives_own_rate_is_shown(tmp_path: Path, plan: Plan) -> None:
    bundle = Bundle.create(tmp_path, "c", "", "s")
    bundle.begin(some_run(target=target(device=drive("vda"))))
    bundle.event("phase", "block_scan", "block size 8 MiB", step=12, steps=14, expected_s=3.5)
    (bundle.path / "telemetry" / "points.lp").write_text(
        "block_device,device=sdb,host=c written_bytes_per_s=1 1\nblock_device,device=vda,host=c written_bytes_per_s=2.5e9 2\n",
        encoding="utf-8",
    )
    shown = Observer(bundle, plan).snapshot()
    assert shown.rates == {"vda writes": 2.5e9}
    assert shown.step == "block size 8 MiB (12/14)"


def test_only_whole_lines_of_a_growing_file_are_read(tmp_path: Path) -> None:
    file = tmp_path / "growing"
    assert last_lines(file) == []
    file.write_text("one\ntwo\nthr", encoding="utf-8")
    assert last_lines(file) == ["one", "two"]
    file.write_text("".join(f"line {i:05d}\n" for i in range(5000)), encoding="utf-8")
    lines = last_lines(file)
    assert lines[-1] == "line 04999"
    assert all(len(line) == 10 for line in lines)


def test_a_tail_that_begins_within_a_line_of_foreign_letters_is_read(tmp_path: Path, plan: Plan) -> None:
    """A cut line is no JSON: reading it ended the display's thread, and its clock stood still."""
    bundle = Bundle.create(tmp_path, "c", "", "s")
    bundle.begin(some_run())
    for number in range(200):
        bundle.event("test", "suite", f"begin: \u00b5\u00e9 {number}")
    assert bundle.events_file.stat().st_size > TAIL_BYTES
    assert len(last_lines(bundle.events_file)) > 10
    assert all(line.startswith("{") for line in last_lines(bundle.events_file))
    assert Observer(bundle, plan).snapshot().step == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_the_clock_goes_on_whatever_a_step_is_called(tmp_path: Path, plan: Plan, terminal: bool) -> None:
    bundle = Bundle.create(tmp_path, "c", "", "s")
    bundle.begin(some_run())
    bundle.event("phase", "provision", "[/red] task [bold", step=2, steps=9)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200)
    display = ProgressDisplay(Observer(bundle, plan), console)
    with display:
        time.sleep(1)
        assert display._thread.is_alive()
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[/red] task [bold (2/9)" in said
    assert said.count("elapsed") >= 1


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        (
            "Validating arguments against arg spec 'main' - Set the governor, and read it back",
            "Set the governor, and read it back",
        ),
        ("Validating arguments against arg spec 'main'", "checking its arguments"),
        ("Remove [a] * : b", "Remove [a] * : b"),
    ],
)
def test_a_role_is_shown_by_its_description(tmp_path: Path, plan: Plan, task: str, shown: str) -> None:
    bundle = Bundle.create(tmp_path, "c", "", "s")
    bundle.begin(some_run())
    bundle.event("phase", "identity", "applying the tuning", step=1, steps=1)
    log = bundle.path / "facts" / "ansible-provision-tuning.log"
    log.parent.mkdir(exist_ok=True)
    for role in ("cpu : ", ""):
        log.write_text(
            f"2026-11-25 03:36:21,377 p=4711 u=root n=ansible INFO| TASK [{role}{task}] ***\n", encoding="utf-8"
        )
        if role or " : " not in task:
            assert Observer(bundle, plan).snapshot().step == f"applying the tuning, {role}{shown}"


def test_while_ansible_works_its_task_is_the_step(tmp_path: Path, plan: Plan) -> None:
    bundle = Bundle.create(tmp_path, "c", "", "s")
    bundle.begin(some_run())
    bundle.event("phase", "identity", "applying the tuning", step=1, steps=1)
    observer = Observer(bundle, plan)
    assert observer.snapshot().step == "applying the tuning"
    prefix = "2026-11-25 03:36:21,377 p=4711 u=root n=ansible INFO| "
    log = bundle.path / "facts" / "ansible-provision-tuning.log"
    log.parent.mkdir(exist_ok=True)
    tasks = ("TASK [cpu : Read the governors]", "ok: [snb]", "TASK [cpu : Set the governor]", "changed: [snb]")
    log.write_text("".join(f"{prefix}{task} ***\n" for task in tasks) + f"{prefix}TASK [cut", encoding="utf-8")
    assert observer.snapshot().step == "applying the tuning, cpu : Set the governor"
    log.write_text("".join(f"{task} ***\n" for task in tasks), encoding="utf-8")  # it has ended
    assert observer.snapshot().step == "applying the tuning"
