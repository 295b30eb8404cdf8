"""`python -m daq_bench.simulation.laboratory FOLDER NUMBER`: a simulated, sealed run of NUMBER candidates, FOLDER/server-0000 and on.

They stand for what the runs of a fleet leave behind, where the fleet itself is what is looked at. Each is marked as simulated."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from daq_bench.simulation.physics.drawing import spec_of
from daq_bench.simulation.run import simulate
from daq_bench.simulation.sample import finish_sample

ENDED = ("PASS", "FAIL", "INADMISSIBLE")


def name_of(number: int) -> str:
    return f"server-{number:04d}"


def make_laboratory(folder: Path, number: int) -> list[Path]:
    """The bundles, one in a folder of each candidate's. For a run that did not end, another server is drawn."""
    made, seed = list[Path](), 0
    while len(made) < number:
        own = folder / name_of(len(made))
        own.mkdir(parents=True, exist_ok=True)
        run = simulate(replace(spec_of(seed), name=own.name), own)
        seed += 1
        if run.bundle is not None and run.outcome in ENDED:
            made.append(finish_sample(run.bundle, rendered=False))
            (own / "latest").unlink()
        else:
            shutil.rmtree(own)
    return made


if __name__ == "__main__":
    make_laboratory(Path(sys.argv[1]), int(sys.argv[2]))
