"""Thinning: the oldest fast samples go first, each counted, and no byte of the file moves."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_helpers import PATIENCE_S, T0_NS, assert_adds_up, run_cli, running_agent, scripted_http, wait_for
from hypothesis import given, settings
from hypothesis import strategies as st
from test_agent_workload import record

from daq_bench.telemetry_agent.delivery.delivery import Delivery
from daq_bench.telemetry_agent.delivery.influx import Destination, InfluxWriter
from daq_bench.telemetry_agent.spool.cursor import Cursor
from daq_bench.telemetry_agent.spool.recovery import recover
from daq_bench.telemetry_agent.spool.room import Limits
from daq_bench.telemetry_agent.spool.spool import Spool
from daq_bench.telemetry_agent.spool.tally import measurement_of
from daq_bench.telemetry_agent.spool.thinning import (
    COMMENT,
    LEVELS_S,
    Journal,
    comment_of,
    parse_comment,
    redo,
    series_of,
    thin,
)

MIB = 2**20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


def fast_line(tick: int, device: str = "nvme0n1") -> str:
    """One of ten samples a second."""
    return f"block_device,device={device},host=my\\ host x={tick}i,padding=123456789012i {T0_NS + tick * 100_000_000}\n"


def slow_line(second: int) -> str:
    """One a second that must stay."""
    return f'smart,device=nvme0n1,host=h x={second}i,text="a b=c,d" {T0_NS + second * 1_000_000_000}\n'


def points_in(path: Path) -> Counter[str]:
    """Points by measurement, as any reader of the file sees them."""
    found: Counter[str] = Counter()
    for line in path.read_bytes().split(b"\n"):
        if line and not line.startswith(b"#"):
            found[measurement_of(line)] += 1
    return found


def fill(spool: Spool, ticks: range) -> None:
    """Ticks of two drives, and each second a slow point."""
    for tick in ticks:
        spool.put([fast_line(tick), fast_line(tick, "sda")], fast=True)
        if tick % 10 == 0:
            spool.put([slow_line(tick // 10)])


def assert_consistent(spool: Spool) -> None:
    """The ledger says of each measurement what the file holds."""
    measurements = spool.ledger.measurements()
    assert {name: entry["spooled"] for name, entry in measurements.items() if entry["spooled"]} == points_in(spool.path)
    for entry in measurements.values():
        assert entry["collected"] == entry["spooled"] + entry["thinned"]
    assert sum(entry["points"] for entry in spool.summary()["thinnings"]) == spool.ledger.totals()["thinned"]


def close(spool: Spool) -> None:
    """Close and give up ownership."""
    assert spool.close()
    spool.release()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("fgs"), st.sampled_from(["a", "b c"]), st.integers(0, 300)), max_size=60),
    st.sampled_from(LEVELS_S),
    st.booleans(),
)
def test_thinning_keeps_whole_lines_and_counts_the_rest(
    samples: list[tuple[str, str, int]], level_s: int, delivered: bool
) -> None:
    """Fast series keep one sample per interval, others all, in order; a second thinning adds to the first's account."""
    lines = [f"{name},t={tag.replace(' ', chr(92) + ' ')} x={n}i {tick * 100_000_000}\n".encode()
             for n, (name, tag, tick) in enumerate(samples)]  # fmt: skip
    kept = thin(b"".join(lines), {"f", "g"}, level_s, set(), delivered, "why")
    stay = kept.lines.splitlines(keepends=True)
    assert stay == [line for line in lines if line in set(stay)]
    assert [line for line in stay if line.startswith(b"s")] == [line for line in lines if line.startswith(b"s")]
    fast = (
        [(series_of(line), int(line.split()[-1]) // (level_s * 10**9)) for line in stay if line[:1] in b"fg"]
        if level_s
        else []
    )
    assert len(fast) == len(set(fast))
    assert kept.new.total == len(lines) - len(stay)
    assert sum(kept.new.delivered.values()) == (kept.new.total if delivered else 0)
    again = thin(kept.lines + comment_of(kept.ever) + b" \0\0\n", {"f", "g"}, 0, set(), False, "why")
    assert again.ever.total == kept.new.total + again.new.total == len(lines) - sum(line[:1] == b"s" for line in lines)


def test_the_bound_holds_and_the_oldest_fast_samples_go_first(tmp_path: Path) -> None:
    """Slow points all stay, offsets too; old fast samples are thinned to one per second and the newest are whole."""
    bound = 3 * MIB
    spool = Spool(tmp_path, (), Limits(bound, 0))
    fill(spool, range(30_000))
    wait_for(lambda: spool.unspooled_points == 0, "everything written or thinned", 60)
    close(spool)
    assert 512 * spool.path.stat().st_blocks <= bound + 64 * 1024
    assert spool.size_bytes == spool.path.stat().st_size > bound
    assert_consistent(spool)
    assert points_in(spool.path)["smart"] == 3000
    text = spool.path.read_bytes()
    newest = text[-MIB // 2 :]
    assert b"#" not in newest
    ticks = [int(line.rsplit(b" ", 1)[1]) for line in text.split(b"\n") if line.startswith(b"block_device,device=sda")]
    tenths = Counter((tick - T0_NS) // 300_000_000_000 for tick in ticks)
    kept = [tenths[number] for number in range(10)]
    assert kept[0] <= 310 < kept[-1] == 3000, "the oldest at one per second at most, the newest whole"
    assert all(later >= earlier - 5 for earlier, later in itertools.pairwise(kept)), "the older, the sparser"
    for thinning in spool.summary()["thinnings"]:
        assert thinning["from_utc"] < thinning["to_utc"]
        assert "--spool-max" in thinning["reason"]


def test_a_restart_knows_what_was_thinned(tmp_path: Path) -> None:
    """From the comments in the file itself, which a reader passes over."""
    spool = Spool(tmp_path, (), Limits(2 * MIB, 0))
    fill(spool, range(12_000))
    wait_for(lambda: spool.unspooled_points == 0, "everything written or thinned", 60)
    close(spool)
    again = Spool(tmp_path)
    close(again)
    assert again.ledger.measurements() == spool.ledger.measurements()
    assert again.summary()["thinnings"] != []
    status = json.loads(run_cli("status", "--spool-dir", str(tmp_path)).stdout)
    assert status["measurements"] == spool.ledger.measurements()
    assert status["points"]["thinned"] == spool.ledger.totals()["thinned"] > 0


@pytest.mark.parametrize("cut", ["before the region", "within the head", "before the hole"])
def test_a_region_whose_rewriting_was_cut_short_is_done_again(tmp_path: Path, cut: str) -> None:
    """SIGKILL between any two of its steps: the journal tells the whole of it."""
    path = tmp_path / "points.lp"
    data = b"".join(fast_line(tick).encode() for tick in range(2000))
    path.write_bytes(data + slow_line(1).encode())
    kept = thin(data, {"block_device"}, 1, set(), False, "why")
    head = kept.lines + comment_of(kept.ever) + b" "
    journal = Journal(tmp_path)
    journal.reserve()
    journal.write(0, len(data), head)
    fd = os.open(path, os.O_RDWR)
    if cut != "before the region":
        os.pwrite(fd, head[: len(head) // 2] if cut == "within the head" else head, 0)
    os.close(fd)
    spool = Spool(tmp_path)
    close(spool)
    assert points_in(path) == {"block_device": 200, "smart": 1}
    assert spool.ledger.measurements()["block_device"] == {
        "collected": 2000, "spooled": 200, "thinned": 1800, "thinned_delivered": 0,
    }  # fmt: skip
    assert path.stat().st_size == len(data) + len(slow_line(1))


def test_half_a_journal_is_no_journal(tmp_path: Path) -> None:
    """Killed while it was written, the region was not touched yet."""
    journal = Journal(tmp_path)
    journal.write(0, 1000, b"m x=1i 1\n" * 50)
    os.truncate(journal.path, 200)
    fd = os.open(tmp_path / "points.lp", os.O_RDWR | os.O_CREAT)
    assert journal.read() is None
    assert not redo(fd, journal, 1000)
    os.close(fd)


def test_delivery_and_thinning_together_account_for_every_point(tmp_path: Path) -> None:
    """InfluxDB holds what is delivered and in the spool, and what was thinned after delivery; rejected lines stay in the spool."""
    stored: set[str] = set()

    def answer(body: bytes, _path: str) -> tuple[int, str]:
        lines = body.decode().splitlines()
        assert not any(line.startswith("#") or "\0" in line for line in lines)
        bad = [line for line in lines if "x=77i" in line and line.startswith("block")]
        stored.update(line for line in lines if line not in bad)
        return (400, f"partial write: no dropped={len(bad)}") if bad else (204, "")

    spool = Spool(tmp_path, (), Limits(2 * MIB, 0))
    cursor = Cursor(tmp_path, 0)
    spool.watch(cursor)
    with scripted_http(answer) as url:
        writer = InfluxWriter(Destination(url, "bench"))
        delivery = Delivery(spool.path, cursor, writer, lambda: spool.size_bytes, spool.fence)
        for start in range(0, 20_000, 500):
            fill(spool, range(start, start + 500))
            if start != 9000:  # now and then it lags behind
                delivery.deliver_batch()
        wait_for(lambda: spool.unspooled_points == 0, "everything written or thinned", 60)
        close(spool)
        delivery.drain(PATIENCE_S)
    assert_consistent(spool)
    known = spool.ledger.totals()
    assert known["thinned"] > known["thinned_delivered"] > 0 or known["thinned"] == known["thinned_delivered"] > 0
    assert cursor.rejected_points == 2
    assert cursor.delivered_points + cursor.rejected_points == known["spooled"]
    assert len(stored) == cursor.delivered_points + known["thinned_delivered"]
    assert points_in(spool.path)["smart"] == 2000
    assert spool.path.read_text().count("my\\ host x=77i,") == 2
    found = recover(spool.path, (), cursor.offset)
    assert found.offset_points == known["spooled"]


def test_rejected_lines_are_counted_from_the_file_after_a_crash(tmp_path: Path) -> None:
    """A cursor saved before the thinning of what it had passed counts too many: the file decides."""
    path = tmp_path / "points.lp"
    path.write_text("".join(slow_line(n) for n in range(10)))
    cursor = Cursor(tmp_path, path.stat().st_size)
    cursor.deliver([line.encode() for line in path.read_text().splitlines(keepends=True)[:4]])
    path.write_text(path.read_text().replace(slow_line(0), "#" * (len(slow_line(0)) - 1) + "\n"))
    spool = Spool(tmp_path)
    close(spool)
    assert Cursor(tmp_path, spool.size_bytes, spool.recovery.offset_points).delivered_points == 3


@contextmanager
def small_disk(directory: Path, kind: str, size: int) -> Iterator[Path]:
    """A mounted file system of its own, certainly unmounted afterwards."""
    mounted = directory / "disk"
    mounted.mkdir()
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(mounted)]
    else:
        image = directory / "disk.img"
        with image.open("wb") as stream:
            stream.truncate(size)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
        command = ["mount", "-o", "loop", str(image), str(mounted)]
    subprocess.run(command, check=True)
    try:
        yield mounted
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def fill_disk(path: Path) -> None:
    """Writes like another program until there is no room."""
    with path.open("wb") as stream:
        for size in (MIB, 4096, 512):
            try:
                while True:
                    os.write(stream.fileno(), b"\1" * size)
            except OSError:
                continue


@needs_root
@pytest.mark.parametrize("kind", ["ext4", "tmpfs"])
def test_a_disk_filled_by_somebody_else_costs_the_oldest_fast_samples_only(tmp_path: Path, kind: str) -> None:
    """A real file system without a byte of room for some time: nothing is unspooled, slow points all arrive, then all goes on."""
    with small_disk(tmp_path, kind, 24 * MIB) as disk:
        spool = Spool(disk / "spool", ("daqwriter",), Limits(16 * MIB, 0))
        fill(spool, range(12_000))
        wait_for(lambda: spool.unspooled_points == 0, "the first part", 60)
        assert spool.ledger.totals()["thinned"] == 0
        fill_disk(disk / "hog")
        for tick in range(12_000, 16_000):
            spool.put([fast_line(tick), fast_line(tick, "sda")], fast=True)
            if tick % 10 == 0:
                spool.put([slow_line(tick // 10)])
                spool.put([record(tick)], fast=True)  # in the fast tick, yet protected
                time.sleep(0.001)
        wait_for(lambda: spool.unspooled_points == 0, "the second part", 60)
        full = spool.ledger.totals()["thinned"]
        assert full > 0
        (disk / "hog").unlink()
        fill(spool, range(16_000, 18_000))
        wait_for(lambda: spool.unspooled_points == 0, "the third part", 60)
        close(spool)
        assert spool.ledger.totals()["thinned"] == full, "with room everything is kept again"
        assert_consistent(spool)
        measurements = spool.ledger.measurements()
        assert (measurements["smart"]["spooled"], measurements["daqwriter"]["spooled"]) == (1800, 400)
        assert measurements["smart"]["thinned"] == measurements["daqwriter"]["thinned"] == 0
        assert measurements["block_device"]["collected"] == 36_000
        reasons = {thinning["reason"] for thinning in spool.summary()["thinnings"]}
        assert all("full" in reason or "keep-free" in reason for reason in reasons), reasons
        again = Spool(disk / "spool")
        close(again)
        assert again.ledger.measurements() == measurements


@needs_root
def test_an_agent_survives_a_full_disk_and_says_what_it_left_out(tmp_path: Path) -> None:
    """The process itself, on a disk that is full from its first second to shortly before its end."""
    with small_disk(tmp_path, "tmpfs", 4 * MIB) as disk:
        arguments = ("--no-influx", "--period", "0.1", "--spool-keep-free", "0B")
        with running_agent(disk / "spool", *arguments) as agent:
            wait_for(lambda: agent.spooled_lines() > 100, "100 points")
            fill_disk(disk / "hog")
            time.sleep(4)
            (disk / "hog").unlink()
            before = agent.spooled_lines()
            wait_for(lambda: agent.spooled_lines() > before + 100, "100 more points")
            summary = agent.terminate()
        assert "thinning fast samples" in agent.stderr
        points, measurements = summary["points"], summary["measurements"]
        assert points["thinned"] > 0
        assert points["unspooled"] == 0
        assert points["collected"] == points["spooled"] + points["thinned"]
        assert points_in(disk / "spool" / "points.lp") == {
            n: e["spooled"] for n, e in measurements.items() if e["spooled"]
        }
        assert measurements["telemetry_agent"]["thinned"] == measurements["memory"]["thinned"] == 0
        for entry in summary["collectors"]:
            assert entry["status"] != "ok" or entry["longest_gap_s"] < 3 + entry["period_s"], entry
        lines = (disk / "spool" / "points.lp").read_bytes().split(b"\n")
        said = [parse_comment(line) for line in lines if line.startswith(COMMENT)]
        assert sum(part.total for part in said if part) == points["thinned"]
        assert sum(thinning["points"] for thinning in summary["spool"]["thinnings"]) == points["thinned"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--spool-max", "8", "'8' is not a size with its unit, e.g. 8GiB"),
        ("--spool-max", "8G", "is not a size with its unit"),
        ("--spool-max", "1MiB", "less than 2MiB"),
        ("--spool-keep-free", "-1GiB", "is not a size with its unit"),
        ("--spool-keep-free", "lots", "is not a size with its unit"),
    ],
)
def test_sizes_without_a_unit_are_refused(tmp_path: Path, option: str, value: str, said: str) -> None:
    """One line, exit 2, nothing written."""
    done = run_cli("run", "--spool-dir", str(tmp_path / "s"), "--no-influx", f"{option}={value}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert option in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "s").exists()


def test_without_a_bound_reached_nothing_is_thinned(tmp_path: Path) -> None:
    """The usual run."""
    with running_agent(tmp_path, "--no-influx", "--period", "0.1") as agent:
        wait_for(lambda: agent.spooled_lines() > 60, "60 points")
        summary = agent.terminate()
    assert_adds_up(summary["points"])
    assert summary["points"]["thinned"] == 0
    assert summary["spool"]["thinnings"] == []
    assert not (tmp_path / "thinning.journal").exists()
