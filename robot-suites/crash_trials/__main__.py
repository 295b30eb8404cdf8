"""`make crash-trials`: the canary, the trials, and the table by process and phase."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench_model.base.errors import BenchError
from crash_trials.campaign import Row, rows_of, run
from crash_trials.candidate import missing
from crash_trials.document import DOCUMENT, write
from crash_trials.hazards import HAZARDS, Hazard, P, Struck, befallen
from crash_trials.virtual_hazards import HAZARDS as VIRTUAL_HAZARDS
from crash_trials.virtual_hazards import befallen as befallen_server
from crash_trials.virtual_hazards import emulated
from rig.base.settings import Layout
from rig.cli.exits import INTERRUPTED
from rig.run.clean_up import interrupts_as_exceptions


def sentence(row: Row) -> str:
    what = f"{row.kind} killed in {row.phase}" if row.struck else f"the run ended before {row.kind} was killed"
    objections = "; ".join(row.objections) or "nothing to object"
    return f"seed {row.seed}: {what}: {row.outcome}, then {row.resumed} ({row.seconds:.0f} s): {objections}"


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="make crash-trials", description=__doc__)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--seed", type=int, default=0, help="of the first trial")
    options.add_argument("--write", action="store_true", help=f"write the table of all rows into {DOCUMENT.name}")
    options.add_argument(
        "--hazards",
        choices=("light", "virtual"),
        help="instead of kills: the faults below and around a light candidate, or those of a whole server on the virtual one",
    )
    options.add_argument("--only", help="names of hazards, with commas between them")
    asked = options.parse_args(arguments)
    folder = Layout().build / "crash-trials"
    try:
        with interrupts_as_exceptions():
            if asked.hazards == "virtual":
                with emulated(folder / "virtual") as place:
                    return strike_all(chosen(VIRTUAL_HAZARDS, asked.only), lambda one: befallen_server(place, one))
            if reason := missing():
                raise BenchError(f"no light candidate can be made here: {reason}")
            if asked.hazards:
                return strike_all(chosen(HAZARDS, asked.only), lambda one: befallen(folder / "hazards", one))
            make_trials(range(asked.seed, asked.seed + asked.trials), folder)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the next call goes on from the trials that were made", file=sys.stderr)
        return INTERRUPTED
    rows = [row for one in sorted(folder.glob("rows-*.jsonl")) for row in rows_of(one)]
    if asked.write:
        write(rows)
    return 1 if any(row.objections for row in rows) else 0


def make_trials(seeds: range, folder: Path) -> None:
    """Prints each trial as it ends. Raises BenchError where the canary is not found."""
    for row in run(seeds, folder / f"rows-{seeds.start}.jsonl", folder / f"work-{seeds.start}"):
        print(sentence(row), flush=True)


def chosen(hazards: tuple[Hazard[P], ...], only: str | None) -> list[Hazard[P]]:
    """Those of the names. Raises BenchError for one that is none."""
    names = only.split(",") if only is not None else [one.kind for one in hazards]
    if unknown := set(names) - {one.kind for one in hazards}:
        known = ", ".join(one.kind for one in hazards)
        raise BenchError(f"ONLY={only}: no hazard {', '.join(map(repr, sorted(unknown)))}; there are {known}")
    return [one for one in hazards if one.kind in names]


def strike_all(hazards: Sequence[Hazard[P]], befall: Callable[[Hazard[P]], Struck]) -> int:
    """Each hazard once; 1 where the judge objects to one."""
    found = []
    for hazard in hazards:
        began_s = time.monotonic()
        found.append(befall(hazard))
        said = "; ".join(found[-1].objections) or "nothing to object"
        right, seconds = " or ".join(found[-1].right), time.monotonic() - began_s
        print(f"{hazard.kind}: {found[-1].outcome} ({right} is right; {seconds:.0f} s): {said}", flush=True)
    return 1 if any(one.objections for one in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
