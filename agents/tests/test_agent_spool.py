"""The spool: whole lines whatever happens, one owner, and every point counted."""

from __future__ import annotations

import os
import resource
import signal
import threading
from pathlib import Path

import pytest
from agent_helpers import wait_for

from daq_bench.telemetry_agent.spool.spool import QUEUE_BYTES_MAX, Spool, SpoolBusy


def close(spool: Spool) -> None:
    """Close and give up ownership."""
    assert spool.close()
    spool.release()


def put_each(spool: Spool, lines: list[str]) -> None:
    """One by one."""
    for line in lines:
        spool.put([line])


def test_lines_of_many_threads_arrive_whole_and_are_counted(tmp_path: Path) -> None:
    """No interleaving, no loss."""
    spool = Spool(tmp_path)
    lines = [[f"m,t={thread} x={n}i {n}\n" for n in range(200)] for thread in range(8)]
    threads = [threading.Thread(target=put_each, args=(spool, own)) for own in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close(spool)
    written = (tmp_path / "points.lp").read_text().splitlines(keepends=True)
    assert sorted(written) == sorted(line for own in lines for line in own)
    assert spool.collected_points == spool.spooled_points == 1600
    assert spool.size_bytes == (tmp_path / "points.lp").stat().st_size


def test_a_torn_last_line_is_cut_off_at_the_next_opening(tmp_path: Path) -> None:
    """And what was whole is counted again."""
    path = tmp_path / "points.lp"
    path.write_text("m x=1i 1\ndaqwriter,p=r offered_bytes=5i 2\nm x=3i 3\nm x=4")
    spool = Spool(tmp_path, ["daqwriter"])
    assert spool.recovery.torn_bytes == len("m x=4")
    assert spool.recovery.points == spool.spooled_points == 3
    assert (spool.recovery.workload_points, spool.recovery.workload_time_ns) == (1, 2)
    spool.put(["m x=5i 5\n"])
    close(spool)
    assert path.read_text() == "m x=1i 1\ndaqwriter,p=r offered_bytes=5i 2\nm x=3i 3\nm x=5i 5\n"


def test_handed_over_points_are_in_the_file_without_closing(tmp_path: Path) -> None:
    """SIGKILL a moment later loses nothing."""
    spool = Spool(tmp_path)
    spool.put(["m x=1i 1\n"])
    wait_for(lambda: (tmp_path / "points.lp").read_text() == "m x=1i 1\n", "the line in the file", 60)
    close(spool)


def test_a_spool_has_one_owner(tmp_path: Path) -> None:
    """A second agent on the same directory is refused by name; afterwards it is free."""
    spool = Spool(tmp_path)
    with pytest.raises(SpoolBusy, match=r"points\.lp is in use"):
        Spool(tmp_path)
    close(spool)
    close(Spool(tmp_path))


def test_a_failed_write_is_taken_back_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the file's size limited (as by a full disk): no half line stays, and the lost are counted."""
    spool = Spool(tmp_path)
    spool.put(["m x=1i 1\n"])
    wait_for(lambda: spool.spooled_points == 1, "the first line")
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, old_limit[1]))
    try:
        spool.put(["m x=2i 2\n", "m x=3i 3\n"])
        wait_for(lambda: spool.last_error is not None, "the error")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    spool.put(["m x=4i 4\n"])
    close(spool)
    assert (tmp_path / "points.lp").read_text() == "m x=1i 1\nm x=4i 4\n"
    assert (spool.collected_points, spool.spooled_points, spool.unspooled_points) == (4, 2, 2)
    assert "File too large, 2 points lost" in capsys.readouterr().err


def test_memory_is_bounded_when_the_disk_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit points are dropped and counted, fast ones as thinned; handing over never waits."""
    gate = threading.Event()
    write = os.pwrite
    spool = Spool(tmp_path)

    def stuck_write(fd: int, data: bytes, offset: int) -> int:
        gate.wait(20)
        return write(fd, data, offset)

    monkeypatch.setattr("daq_bench.telemetry_agent.spool.thinning.os.pwrite", stuck_write)
    spool.put(["first x=1i 1\n"])
    wait_for(lambda: not spool._queue, "the writer stuck in its first write")
    many = (QUEUE_BYTES_MAX - spool._queued_bytes) // len("m x=1i 1\n")
    spool.put(["m x=1i 1\n"] * many)
    spool.put(["m x=2i 2\n"] * 3)
    spool.put(["f x=2i 2\n"] * 4, fast=True)
    assert spool.last_error is not None
    gate.set()
    close(spool)
    assert spool.spooled_points == many + 1
    assert spool.unspooled_points == 3
    assert spool.ledger.measurements()["f"] == {"collected": 4, "spooled": 0, "thinned": 4, "thinned_delivered": 0}
    (thinning,) = spool.summary()["thinnings"]
    assert (thinning["points"], thinning["reason"]) == (4, "the disk has not kept up")


def test_after_closing_nothing_is_taken_nor_counted(tmp_path: Path) -> None:
    """A collector left behind may come back too late."""
    spool = Spool(tmp_path)
    close(spool)
    spool.put(["m x=1i 1\n"])
    assert spool.collected_points == 0
