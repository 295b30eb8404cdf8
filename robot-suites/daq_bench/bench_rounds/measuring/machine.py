"""The machine under the measurement: its facts, its free space, its huge pages, and the bench's scratch folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import MIB, decimal_label
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_rounds.measuring.processes import Busy
from daq_bench.rig.candidate.host import require_target_directory, survey
from daq_bench.rig.candidate.machine import LocalMachine

HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
HUGE_PAGE_BYTES = 2 * MIB
FOLDER = "daqwriter-bench"
SPARE_BYTES = 10**9
BUSY_MAX = 0.05  # of all CPUs; more than this before anything was started is somebody else's work
WATCHED_S = 3.0  # the load average would still show work that ended minutes ago


def facts(directory: Path) -> dict[str, Any]:
    """CPU, kernel, tuning, target file system and device, load over WATCHED_S, and free space."""
    busy = Busy()
    time.sleep(WATCHED_S)
    busy_share = busy.share()
    found = survey(LocalMachine(), directory)
    assert found.target is not None  # the caller has made the folder
    device = found.target.device
    return {
        **as_document(found.host),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "filesystem": found.target.filesystem,
        "device": as_document(device) if device else None,
        "io_scheduler": _read(f"/sys/block/{device.name}/queue/scheduler") if device else None,
        "largest_request_kib": _read(f"/sys/block/{device.name}/queue/max_sectors_kb") if device else None,
        "most_segments": _read(f"/sys/block/{device.name}/queue/max_segments") if device else None,
        "load_average_before": list(os.getloadavg()),
        "busy_share_before": busy_share,
        "free_bytes": shutil.disk_usage(directory).free,
    }


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None


def busy_warning(busy_share: float) -> str | None:
    """The warning that something else is running, or None. `busy_share`: 0 to 1, of all CPUs, before anything was started."""
    if busy_share <= BUSY_MAX:
        return None
    return (
        f"the CPUs were {100 * busy_share:.0f} % busy in the {WATCHED_S:g} s before anything was started: "
        "other work disturbs the figures. Wait until the machine is idle"
    )


def require_space(directory: Path, needs: dict[str, int], free: int) -> None:
    """Raises RefusedError, with the arithmetic, when the part that needs most does not fit."""
    part, most = max(needs.items(), key=lambda item: item[1])
    if most and most + SPARE_BYTES > free:
        raise RefusedError(
            f"{directory} has {decimal_label(free)} free; part {part} needs {decimal_label(most)} of files at once and "
            f"{decimal_label(SPARE_BYTES)} are left over: {decimal_label(most + SPARE_BYTES - free)} too little. "
            "Choose another folder with BENCH_DIR=, or leave the part out with PARTS="
        )


@contextmanager
def scratch_folder(directory: Path) -> Iterator[Path]:
    """`directory/daqwriter-bench`, this process' alone and empty; removed at the end, as is what a killed run left there."""
    require_target_directory(directory)
    folder = directory / FOLDER
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
    except BlockingIOError:
        raise RefusedError(f"another bench is measuring in {directory}: wait for it, or choose BENCH_DIR=") from None
    finally:
        os.close(lock)


@contextmanager
def reserved_huge_pages(wanted_bytes: int, setting: Path = HUGE_PAGES) -> Iterator[str | None]:
    """Reserves huge pages on top of those that there are, and gives them back. Yields why it was not possible, or None."""
    pages = -(-wanted_bytes // HUGE_PAGE_BYTES)
    if not os.access(setting, os.W_OK):
        yield "vm.nr_hugepages cannot be set: that needs root"
        return
    before = int(setting.read_text(encoding="ascii"))
    try:
        setting.write_text(str(before + pages), encoding="ascii")
        granted = int(setting.read_text(encoding="ascii")) - before
        yield None if granted >= pages else f"{pages} huge pages were asked for, {granted} are to be had"
    finally:
        try:
            setting.write_text(str(before), encoding="ascii")
        except OSError as error:
            raise BenchError(f"vm.nr_hugepages could not be set back to {before}: {error.strerror}") from None
