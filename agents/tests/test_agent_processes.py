"""Other people's processes: their CPU time counts once, their names alone are told, and the bench's own work does not count."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent_helpers import by_tag, undeclared
from recorded_tree import sample

from daq_bench.telemetry_agent.collectors.processes import ALL, CPUS, OTHERS_MAX, OWN, Processes, parse_stat
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported

HERTZ = os.sysconf("SC_CLK_TCK")
KERNEL = 0x00200000


def stat(
    name: str,
    parent: int = 1,
    own_s: float = 0.0,
    waited_s: float = 0.0,
    started: int = 1,
    flags: int = 0,
    written: int = 0,
) -> str:
    ticks = [round(own_s * HERTZ), 0, round(waited_s * HERTZ), 0]
    line = ["S", parent, 0, 0, 0, -1, flags, 0, 0, 0, 0, *ticks, 20, 0, 1, 0, started, 0]
    return f"7 ({name}) {' '.join(map(str, line))}\n{written}"


def reading(at_s: float, own: str = "10", cpus: int = 4, **processes: str) -> Reading:
    texts = {number.removeprefix("p"): text for number, text in processes.items()}
    return Reading(int(at_s * 1e9), at_s, {**texts, OWN: own, CPUS: str(cpus)})


def shares(before: Reading, after: Reading) -> dict[str, dict[str, float]]:
    points = Processes(2.0).parse(after, before)
    assert all(undeclared(point) == [] for point in points)
    return by_tag(points, "name")


def test_cpu_time_is_a_share_of_all_cpus_and_writes_are_a_rate() -> None:
    before = reading(0, p20=stat("stress", own_s=1), p21=stat("stress"), p22=stat("cron"))
    after = reading(
        2, p20=stat("stress", own_s=3, written=4000), p21=stat("stress", own_s=2), p22=stat("cron", own_s=0.4)
    )
    found = shares(before, after)
    # 4 s of 2 s x 4 CPUs, and 0.4 of 8
    assert found["stress"] == {"cpu_fraction": pytest.approx(0.5), "written_bytes_per_s": 2000.0}
    assert found["cron"]["cpu_fraction"] == pytest.approx(0.05)
    assert found[ALL]["cpu_fraction"] == pytest.approx(0.55)


def test_bytes_that_may_not_be_read_of_one_are_not_told_of_all() -> None:
    hidden = stat("stress", own_s=3).rpartition("\n")[0] + "\n?"
    found = shares(reading(0, p20=stat("stress")), reading(2, p20=hidden, p21=stat("cron", own_s=1, written=200)))
    assert found["stress"] == {"cpu_fraction": pytest.approx(3 / 8)} and set(found[ALL]) == {"cpu_fraction"}
    assert found["cron"]["written_bytes_per_s"] == 100.0


def test_the_benchs_own_work_and_the_kernels_are_none_of_others() -> None:
    before = reading(0, own="10 30")
    after = reading(
        2, own="10 30", p10=stat("python3", own_s=1), p11=stat("fio", parent=10, own_s=5), p12=stat("sh", parent=11, own_s=1),
        p30=stat("supervise", own_s=1), p31=stat("anything", parent=30, own_s=1), p40=stat("fio", own_s=5),
        p41=stat("kworker/1:1", parent=2, own_s=3, flags=KERNEL),
    )  # fmt: skip
    assert shares(before, after) == {ALL: {"cpu_fraction": 0.0, "written_bytes_per_s": 0.0}}


def test_children_that_ended_count_once() -> None:
    before = reading(0, p20=stat("make", waited_s=5), p21=stat("cc1", parent=20, own_s=3))
    # cc1 ended after 3.5 s; three others lived for 1 s each between the readings
    after = reading(2, p20=stat("make", waited_s=5 + 3.5 + 3))
    assert shares(before, after)[ALL]["cpu_fraction"] == pytest.approx(3.5 / 8)


def test_a_number_that_was_given_again_and_a_parent_that_ended_do_not_count_old_time() -> None:
    before = reading(0, p20=stat("old", own_s=50, started=1), p11=stat("tool", parent=10, own_s=90))
    after = reading(2, p20=stat("new", own_s=0.8, started=9), p11=stat("tool", parent=1, own_s=90))
    assert shares(before, after)[ALL]["cpu_fraction"] == pytest.approx(0.1)


def test_only_the_foremost_are_named() -> None:
    many = {f"p{number}": stat(f"job{number}", own_s=number / 100) for number in range(20, 60)}
    found = shares(reading(0), reading(2, **many))
    assert len(found) == OTHERS_MAX + 1 and "job59" in found and "job20" not in found


@pytest.mark.parametrize(
    ("name", "shown"), [("a) b (c", "a) b (c"), ('x"\\y', "x??y"), ("two\nlines", "two?lines"), ("", "?")]
)
def test_a_hostile_name_is_a_name(name: str, shown: str) -> None:
    assert parse_stat(stat(name))[0].name == shown


@pytest.mark.parametrize("text", ["", "7 (x) S 1", "nothing\n0", "7 (x) " + "y " * 25 + "\n0", stat("x")[:-1] + "many"])
def test_what_is_not_the_kernels_line_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="/proc/PID"):
        parse_stat(text)


def test_it_sees_a_busy_process_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Processes(2.0)
    monkeypatch.setattr(collector, "_family", lambda _texts: [])
    with subprocess.Popen([sys.executable, "-c", "while True: pass", "a secret"], stdout=subprocess.DEVNULL) as busy:
        try:
            before = collector.read()
            own = Path(f"/proc/{busy.pid}/stat")
            first = parse_stat(before.texts[str(busy.pid)])[0].own_ticks
            while parse_stat(own.read_text() + "0")[0].own_ticks < first + 5:
                time.sleep(0.02)
            after = collector.read()
        finally:
            busy.kill()
    points = collector.parse(after, before._replace(monotonic_s=after.monotonic_s - 2.0))
    assert by_tag(points, "name")[ALL]["cpu_fraction"] > 0
    assert "secret" not in str(points)


def test_a_machine_without_processes_says_so(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    with pytest.raises(Unsupported, match="no process can be read there"):
        sample(Processes(1.0, tmp_path))


def test_the_agent_and_its_parent_are_its_own() -> None:
    own = Processes(1.0).read().texts[OWN].split()
    assert str(os.getpid()) in own and "1" not in own
