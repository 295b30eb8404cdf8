"""Runs of a few simulated servers: sealed and signed by a key of this process, as runs in a laboratory are.

Their run.json does not say that they are simulated, since no such run can be PASS or FAIL and none is ranked. So no bundle leaves this
process: the documents say it on each page, and in the candidate's name."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.rig.checking.signing import Signer
from daq_bench.simulation.physics.drawing import Spec, spec_of
from daq_bench.simulation.physics.hazards import Hazard
from daq_bench.simulation.run import simulate

MARK = "SIMULATED"
SCENARIO = "market"  # snb-100s and dune-snb as shipped
SCATTER = 0.006  # of a server's pace from run to run
APART = 12  # seeds, which are 2 h each: a run a day


@dataclass(frozen=True)
class Server:
    """`seed`: of the market, whose server it is; `pace`: times its drives' own; `left_out`: share of the load, as --scale leaves it out."""

    name: str
    seed: int
    pace: float = 1.0
    scatter: float = SCATTER
    left_out: float = 0.0

    def spec(self, number: int, drive: str = "") -> Spec:
        """Its run of day `number`; with `drive`, on another specimen with this serial."""
        random = Random(f"{self.name} {number} {drive}")
        found = spec_of(self.seed, SCENARIO)
        factor = self.pace * random.gauss(1.0, self.scatter)
        paced = (
            replace(one, cell_rate=one.cell_rate * factor, cache_rate=one.cache_rate * factor) for one in found.drives
        )
        drives = tuple(replace(one, serial=drive, wwn=f"eui.{drive}") if drive else one for one in paced)
        seed = self.seed + APART * number
        hazards = (Hazard("less_asked", 0, 0.0, 0.0, self.left_out, 0),) if self.left_out else ()
        return replace(found, seed=seed, name=f"{MARK}-{self.name}", drives=drives, hazards=hazards)


# Servers 0, 2, 3 and 7 of the market: two that are nearly alike, a dear one that is above both, and one below the demand.
ALPHA, BETA, GAMMA, DELTA = Server("alpha", 0), Server("beta", 2), Server("gamma", 3), Server("delta", 7)
OPEN = Server("epsilon", 0, pace=0.868, scatter=0.0)  # so near the demand that its runs cannot say on which side
REHEARSED = Server("zeta", 7, pace=0.5, left_out=0.5)  # half of the load is too much for it
PRICES = {ALPHA: 21_500, BETA: 19_900, GAMMA: 31_800, DELTA: 15_400}  # EUR, made up


@dataclass(frozen=True)
class Order:
    server: Server
    number: int
    drive: str = ""


@dataclass(frozen=True)
class Laboratory:
    """Where the runs are made. `signers`: the file that names the key of this process."""

    folder: Path
    jobs: int = 1
    key: Path = field(init=False)
    signers: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.folder / "key")
        object.__setattr__(self, "signers", self.folder / "allowed_signers")
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", MARK, "-f", str(self.key)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"ssh-keygen makes no key: {done.stderr.strip()}")
        public = Path(f"{self.key}.pub").read_text(encoding="utf-8")
        self.signers.write_text(f"samples {public}", encoding="utf-8")

    def runs(self, orders: Sequence[Order]) -> dict[Order, Path]:
        """Makes them all, in parallel. Raises BenchError for a server that is refused before there is a bundle."""
        with ProcessPoolExecutor(self.jobs) as pool:
            return dict(zip(orders, pool.map(_made, ((one, self.folder, self.key) for one in orders)), strict=True))


def _made(asked: tuple[Order, Path, Path]) -> Path:
    order, folder, key = asked
    own = folder / order.server.name / f"{order.number:02d}{order.drive}"
    own.mkdir(parents=True)
    spec = order.server.spec(order.number, order.drive)
    run = simulate(spec, own, SCENARIO)
    if run.bundle is None:
        raise BenchError(f"{spec.name} is refused before there is a bundle: {run.reasons[0]}")
    reduced = [text for text in run.bundle.run.scaled_down or [] if not text.startswith(MARK)]
    run.bundle.save_run(simulated=False, scaled_down=reduced)
    verdict = judge_bundle(run.bundle.path)
    run.bundle.write("verdict.json", verdict)
    run.bundle.event("verdict", "judge", verdict.outcome, reasons=verdict.reasons)
    seal_evidence(run.bundle.path, Signer.of(key))
    return run.bundle.path


def serials(number: int) -> Iterator[str]:
    for one in range(1, number + 1):
        yield f"SIM{one:08X}"
