"""Faults below and around a light candidate of which the bench is not told, and the outcome that is right, in the simulation's words."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from bench_model.base.errors import BenchError
from crash_trials import judge
from crash_trials.campaign import mended, place_of
from crash_trials.candidate import BEFORE, DIRECTORY, LightCandidate
from crash_trials.trial import Bench, Place, document, phase_of, wait_until
from rig.on_candidate.network.namespaces import tool
from simulation.truth import ERROR, FAIL, INADMISSIBLE, NAMED, PASS

WRECKED = ("lost_writes",)  # the file system on the drive is gone with it
PHASE_S_MAX, FULL_BYTES = 300.0, 6 * 2**20
BLOCK_BYTES, FLIPPED = 4096, 0x40


P = TypeVar("P", bound=Bench)


@dataclass(frozen=True)
class Hazard(Generic[P]):
    """`strike` under the load of `phase`, `undo` when the run has ended. `named`: what must be said of the cause; empty: nothing to say."""

    kind: str
    right: frozenset[str]
    named: str
    strike: Callable[[P], None]
    undo: Callable[[P], None] = lambda place: None
    wrecks: bool = False  # the bench cannot reach what it would give back
    phase: str = "snb_record"


def _reset_sysctl(place: Place) -> None:
    place.candidate.command("echo 65536 > /proc/sys/fs/aio-max-nr")


def _stop_influxdb(place: Place) -> None:
    pid = place.influx.running_pid()
    if pid is None:
        raise BenchError("InfluxDB does not run")
    os.kill(pid, signal.SIGKILL)


def _start_influxdb(place: Place) -> None:
    place.influx_url()


def extents(candidate: LightCandidate, pattern: str) -> list[tuple[int, int]]:
    """Says where the blocks of the files that match lie in the drive's backing file: offset and length, B."""
    said = candidate.command(f"sync -f {DIRECTORY}; filefrag -v -b{BLOCK_BYTES} {DIRECTORY}/*/{pattern}")
    found = re.findall(r"^\s*\d+:\s+\d+\.\.\s*\d+:\s+(\d+)\.\.\s*\d+:\s+(\d+):", said, re.MULTILINE)
    return [(int(start) * BLOCK_BYTES, int(length) * BLOCK_BYTES) for start, length in found]


def _flip_bits(place: Place) -> None:
    """Turns one bit in each of 40 stored blocks of the record that is being written."""
    deadline = time.monotonic() + PHASE_S_MAX
    while True:
        pieces = [piece for piece in extents(place.candidate, "snb-record-*.daq") if piece[1] >= 40 * BLOCK_BYTES]
        if pieces:
            break
        if time.monotonic() > deadline:
            raise BenchError("the record has no blocks on the drive")
    start, _ = pieces[0]
    with place.candidate.backing.open("r+b", buffering=0) as file:
        for block in range(8, 40):
            at = start + block * BLOCK_BYTES + 2000
            old = os.pread(file.fileno(), 1, at)
            os.pwrite(file.fileno(), bytes([old[0] ^ FLIPPED]), at)
        os.fsync(file.fileno())


def _forget_writes(place: Place) -> None:
    """The drive forgets all that it has stored behind its first MiB, and takes what comes."""
    os.truncate(place.candidate.backing, 2**20)


def _fill_disk(place: Place) -> None:
    """Fills the file system that holds the bundles."""
    with (place.runs / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 65536)


def _empty_disk(place: Place) -> None:
    (place.runs / "filler").unlink()


HAZARDS: tuple[Hazard[Place], ...] = (
    Hazard("nothing", frozenset({PASS}), "", lambda place: None),
    Hazard("sysctl_reset", frozenset({INADMISSIBLE}), NAMED["sysctl_reset"], _reset_sysctl),
    Hazard(
        "network_cut", frozenset({ERROR}), r"connection to .* lost", lambda place: place.candidate.cut(off=True),
        lambda place: place.candidate.cut(off=False), wrecks=True,
    ),
    Hazard("influxdb_down", frozenset({PASS}), "", _stop_influxdb, _start_influxdb),
    Hazard("bit_flips", frozenset({FAIL}), NAMED["bit_flips"], _flip_bits),
    # A record whose head is lost has lost all that its writer was told was stored, as one that is lost behind it (docs/adr/0002).
    Hazard("lost_writes", frozenset({FAIL}), r"SNB-0[34]", _forget_writes, wrecks=True),
    Hazard("control_disk_full", frozenset({INADMISSIBLE, ERROR}), NAMED["control_disk_full"], _fill_disk, _empty_disk, wrecks=True),
)  # fmt: skip


@dataclass(frozen=True)
class Struck:
    """Describes how a run ended that a hazard befell. `objections`: to its outcome, to its words, and to what one `restore` leaves."""

    kind: str
    right: list[str]
    outcome: str
    objections: list[str]


def strike(place: P, hazard: Hazard[P]) -> Struck:
    """A run with the hazard under its load; the judge looks at its outcome, its words and at what is left."""
    before, log = place.newest(), place.folder / "qualify.log"
    with place.started(place.qualify(), log) as process:
        loading = wait_until(
            lambda: (
                process.poll() is not None or (place.newest() != before and phase_of(place.newest()) == hazard.phase)
            ),
            place.phase_s_max,
        )
        if not loading or process.poll() is not None:
            raise BenchError(f"the run ended before its {hazard.phase}: {log.read_text(encoding='utf-8')[-2000:]}")
        place.wait_for_load(hazard.phase)
        hazard.strike(place)
        status = process.wait(place.phase_s_max * 2)
        hazard.undo(place)
    bundle, text = place.newest(), log.read_text(encoding="utf-8", errors="replace")
    verdict = document(bundle, "verdict.json")
    found = str(verdict.get("outcome", ERROR if status == 2 else "none"))
    said = [
        text,
        *(str(one) for one in verdict.get("reasons", [])),
        str(document(bundle, "run.json").get("state_reason")),
    ]
    said += [f"{one['id']} {one['outcome']}" for one in verdict.get("requirements", []) if one["outcome"] == FAIL]
    wrong = [] if found in hazard.right else [f"{found} where {' or '.join(sorted(hazard.right))} is right"]
    if hazard.named and not any(re.search(hazard.named, one) for one in said):
        wrong.append(f"nobody names {hazard.named}")
    if "Traceback" in text:
        wrong.append("the command ended with a traceback")
    return Struck(hazard.kind, sorted(hazard.right), found, wrong)


@contextmanager
def small_disk(place: Place) -> Iterator[None]:
    """A file system of 6 MiB for the bundles."""
    place.runs.mkdir(exist_ok=True)
    tool("mount", "-t", "tmpfs", "-o", f"size={FULL_BYTES}", "bench-runs", str(place.runs))
    try:
        yield
    finally:
        tool("umount", str(place.runs))


def befallen(folder: Path, hazard: Hazard[Place]) -> Struck:
    """The hazard on a candidate of its own; what it and one `restore` leave is judged too."""
    with place_of(folder / hazard.kind) as place:
        with small_disk(place) if hazard.kind == "control_disk_full" else nullcontext():
            struck = strike(place, hazard)
            left = judge.recorded_while_tuned(place.candidate)
            if not hazard.wrecks:  # what the hazard lets the bench give back is given back
                left += judge.processes_ended(place) + judge.is_as_before(place.candidate)
            left += (
                mended(place) if hazard.kind not in WRECKED else []
            )  # its file system is gone: the settings alone are asked for
        if hazard.kind in WRECKED and place.candidate.settings() != BEFORE:
            left.append(f"left tuned: {place.candidate.settings()}")
        return replace(struck, objections=struck.objections + left)
