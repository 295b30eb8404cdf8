"""Faults below and around a light candidate of which the bench is not told, and the outcome that is right, in the simulation's words."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.verdict import ERROR, FAIL, INADMISSIBLE, PASS
from daq_bench.crash_trials import judge
from daq_bench.crash_trials.campaign import mended, place_of
from daq_bench.crash_trials.candidate import BEFORE, DIRECTORY, LightCandidate
from daq_bench.crash_trials.trial import RUN_S_MAX, Bench, Place, document, phase_of, wait_until
from daq_bench.rig.cli.exits import EXIT
from daq_bench.rig.on_candidate.network.namespaces import tool
from daq_bench.simulation.truth import NAMED, REFUSED

WRECKED = ("lost_writes",)  # the file system on the drive is gone with it
PHASE_S_MAX, FULL_BYTES = 300.0, 6 * 2**20
BLOCK_BYTES, FLIPPED = 4096, 0x40
FOREIGN, FOREIGN_BYTES = DIRECTORY / "foreign.bin", 128 * 2**20
AT_REST = ""  # the phase of what befalls a candidate before the run


P = TypeVar("P", bound=Bench)


@dataclass(frozen=True)
class Hazard(Generic[P]):
    """`strike` under the load of `phase`, `undo` when the run has ended. `how` is for the page. `named`: what must be said of the causes,
    each by anybody; empty: nothing to say."""

    kind: str
    how: str
    right: frozenset[str]
    named: tuple[str, ...]
    strike: Callable[[P], None]
    undo: Callable[[P], None] = lambda place: None
    wrecks: bool = False  # the bench cannot reach what it would give back
    phase: str = "snb_record"
    harmless: bool = False  # nothing that a buyer must not accept: an objection is a false alarm

    def delay_s(self, seed: int, most_s: float) -> float:
        """How long after the begin of the load it strikes; the same seed is always the same moment."""
        return random.Random(f"hazard {self.kind} {seed}").uniform(0.0, most_s)


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


def _write_beside(place: Place) -> None:
    """Another program writes to the target: a file of its own, again and again."""
    count = FOREIGN_BYTES // 2**20
    write = f"dd if=/dev/zero of={FOREIGN} bs=1M count={count} oflag=direct conv=notrunc status=none"
    place.candidate.command(f"systemd-run --quiet --unit=foreign sh -c 'while {write}; do :; done'")


def _end_beside(place: Place) -> None:
    """Its file is nobody's but its own: a bench that removed or cut it would have written to what is not the bench's."""
    place.candidate.command(f"systemctl stop foreign; test $(stat -c %s {FOREIGN}) = {FOREIGN_BYTES} && rm {FOREIGN}")


def _reset_and_flip(place: Place) -> None:
    _reset_sysctl(place)
    _flip_bits(place)


HAZARDS: tuple[Hazard[Place], ...] = (
    Hazard("nothing", "", frozenset({PASS}), (), lambda place: None, harmless=True),
    Hazard(
        "sysctl_reset", "`fs.aio-max-nr` is set back in the record", frozenset({INADMISSIBLE}), (NAMED["sysctl_reset"],), _reset_sysctl,
    ),
    Hazard(
        "network_cut", "the candidate's port goes down", frozenset({ERROR}), (r"connection to .* lost",),
        lambda place: place.candidate.cut(off=True), lambda place: place.candidate.cut(off=False), wrecks=True,
    ),
    Hazard(
        "influxdb_down", "SIGKILL; its points are delivered later", frozenset({PASS}), (), _stop_influxdb, _start_influxdb, harmless=True,
    ),
    Hazard(
        "other_load", "another program writes to the target, which has room enough", frozenset({PASS}), (), _write_beside, _end_beside,
        harmless=True,
    ),
    Hazard(
        "bit_flips", "one bit in each of 32 stored blocks, below the loop device", frozenset({FAIL}), (NAMED["bit_flips"],),
        _flip_bits,
    ),
    Hazard(
        "several", "sysctl_reset and bit_flips", frozenset({INADMISSIBLE}), (NAMED["sysctl_reset"], NAMED["bit_flips"]), _reset_and_flip,
    ),
    # A record whose head is lost has lost all that its writer was told was stored, as one that is lost behind it (docs/adr/0002).
    Hazard(
        "lost_writes", "the file below forgets all behind its first MiB", frozenset({FAIL}),
        (r"SNB-0[34]",), _forget_writes, wrecks=True,
    ),
    Hazard(
        "control_disk_full", "the bundles' file system of 6 MiB is filled",
        frozenset({INADMISSIBLE, ERROR}), (NAMED["control_disk_full"],), _fill_disk, _empty_disk, wrecks=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Struck:
    """Describes how a run ended that a hazard befell. `objections`: to its outcome, to its words, and to what one `restore` leaves."""

    kind: str
    seed: int
    right: list[str]
    outcome: str
    objections: list[str]
    seconds: float = 0.0

    @property
    def wrong_pass(self) -> bool:
        return self.outcome == PASS and PASS not in self.right


def strike(place: P, hazard: Hazard[P], seed: int) -> Struck:
    """A run that the hazard befalls; the judge looks at its outcome and its words."""
    before, log = place.newest(), place.folder / "qualify.log"
    wrong: list[str] = []
    if hazard.phase == AT_REST:
        hazard.strike(place)
    with place.started(place.qualify(), log) as process:
        if hazard.phase != AT_REST:
            _strike_in_load(place, hazard, seed, before, lambda: process.poll() is not None)
        try:
            status = process.wait(place.phase_s_max * 2)
        except subprocess.TimeoutExpired:
            process.terminate()
            status = process.wait(RUN_S_MAX)
            wrong.append(f"the run did not end within {place.phase_s_max * 2:.0f} s")
        hazard.undo(place)
    bundle, text = place.newest(), log.read_text(encoding="utf-8", errors="replace")
    if bundle == before:
        bundle = None
    verdict = document(bundle, "verdict.json")
    found = str(verdict.get("outcome", _without_verdict(status, bundle)))
    said = [
        text,
        *(str(one) for one in verdict.get("reasons", [])),
        str(document(bundle, "run.json").get("state_reason")),
    ]
    said += [f"{one['id']} {one['outcome']}" for one in verdict.get("requirements", []) if one["outcome"] == FAIL]
    wrong += [] if found in hazard.right else [f"{found} where {' or '.join(sorted(hazard.right))} is right"]
    wrong += [f"nobody names {cause}" for cause in hazard.named if not any(re.search(cause, one) for one in said)]
    if "Traceback" in text:
        wrong.append("the command ended with a traceback")
    return Struck(hazard.kind, seed, sorted(hazard.right), found, wrong)


def _strike_in_load(place: P, hazard: Hazard[P], seed: int, before: Path | None, ended: Callable[[], bool]) -> None:
    """Strikes in the load of the hazard's phase. Raises BenchError where the run does not come so far."""
    loading = wait_until(
        lambda: ended() or (place.newest() != before and phase_of(place.newest()) == hazard.phase), place.phase_s_max
    )
    if not loading or ended():
        said = (place.folder / "qualify.log").read_text(encoding="utf-8", errors="replace")
        raise BenchError(f"the run ended before its {hazard.phase}: {said[-2000:]}")
    place.wait_for_load(hazard.phase)
    time.sleep(hazard.delay_s(seed, place.strike_s_max))
    hazard.strike(place)


def _without_verdict(status: int, bundle: Path | None) -> str:
    """Preflight refuses before there is a bundle; the same status behind it is a run that broke."""
    if status != EXIT[ERROR]:
        return f"exit status {status} without a verdict"
    return ERROR if bundle else REFUSED


@contextmanager
def small_disk(place: Place) -> Iterator[None]:
    """A file system of 6 MiB for the bundles."""
    place.runs.mkdir(exist_ok=True)
    tool("mount", "-t", "tmpfs", "-o", f"size={FULL_BYTES}", "bench-runs", str(place.runs))
    try:
        yield
    finally:
        tool("umount", str(place.runs))


def befallen(folder: Path, hazard: Hazard[Place], seed: int) -> Struck:
    """The hazard on a candidate of its own; what it and one `restore` leave is judged too."""
    with place_of(folder / hazard.kind) as place:
        with small_disk(place) if hazard.kind == "control_disk_full" else nullcontext():
            struck = strike(place, hazard, seed)
            left = judge.recorded_while_tuned(place.candidate)
            if not hazard.wrecks:  # what the hazard lets the bench give back is given back
                left += judge.processes_ended(place) + judge.is_as_before(place.candidate)
            left += (
                mended(place) if hazard.kind not in WRECKED else []
            )  # its file system is gone: the settings alone are asked for
        if hazard.kind in WRECKED and place.candidate.settings() != BEFORE:
            left.append(f"left tuned: {place.candidate.settings()}")
        return replace(struck, objections=struck.objections + left)
