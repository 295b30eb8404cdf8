"""`make crash-trials`: the canary, the trials and their table; or the hazards of a level and theirs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.rows import add_rows
from daq_bench.crash_trials.campaign import Row, alone, rows_of, run
from daq_bench.crash_trials.candidate import missing
from daq_bench.crash_trials.document import DOCUMENT, write, write_hazards
from daq_bench.crash_trials.hazards import HAZARDS, Hazard, P, Struck, befallen
from daq_bench.crash_trials.trial import Place
from daq_bench.crash_trials.virtual_hazards import HAZARDS as VIRTUAL_HAZARDS
from daq_bench.crash_trials.virtual_hazards import Emulated, emulated
from daq_bench.crash_trials.virtual_hazards import befallen as befallen_server
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli.exits import INTERRUPTED
from daq_bench.rig.run.clean_up import interrupts_as_exceptions


def sentence(row: Row) -> str:
    what = f"{row.kind} killed in {row.phase}" if row.struck else f"the run ended before {row.kind} was killed"
    objections = "; ".join(row.objections) or "nothing to object"
    return f"seed {row.seed}: {what}: {row.outcome}, then {row.resumed} ({row.seconds:.0f} s): {objections}"


def main(arguments: list[str]) -> int:
    options = Parser(prog="make crash-trials", description=__doc__)
    options.add_argument("--trials", type=int, help="200, or 1 of each hazard")
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
    seeds = range(asked.seed, asked.seed + (asked.trials or (1 if asked.hazards else 200)))
    try:
        with interrupts_as_exceptions(), alone(folder):
            if asked.hazards == "virtual":
                return strike_server(chosen(VIRTUAL_HAZARDS, asked.only), seeds, folder, write=asked.write)
            if reason := missing():
                raise BenchError(f"no light candidate can be made here: {reason}")
            if asked.hazards:
                return strike_light(chosen(HAZARDS, asked.only), seeds, folder, write=asked.write)
            make_trials(seeds, folder)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the next call goes on from the trials that were made", file=sys.stderr)
        return INTERRUPTED
    rows = [row for one in sorted(folder.glob("rows-*.jsonl")) for row in rows_of(one, Row)]
    if asked.write:
        write(rows)
    return 1 if any(row.objections for row in rows) else 0


def make_trials(seeds: range, folder: Path) -> None:
    """Prints each trial as it ends. Raises BenchError where the canary is not found."""
    for row in run(seeds, folder / f"rows-{seeds.start}.jsonl", folder / f"work-{seeds.start}"):
        print(sentence(row), flush=True)


def chosen(hazards: tuple[Hazard[P], ...], only: str | None) -> list[Hazard[P]]:
    """The hazards of these names. Raises BenchError for an unknown name."""
    names = only.split(",") if only is not None else [one.kind for one in hazards]
    if unknown := set(names) - {one.kind for one in hazards}:
        known = ", ".join(one.kind for one in hazards)
        raise BenchError(f"ONLY={only}: no hazard {', '.join(map(repr, sorted(unknown)))}; there are {known}")
    return [one for one in hazards if one.kind in names]


def strike_light(hazards: list[Hazard[Place]], seeds: range, folder: Path, *, write: bool) -> int:
    """Each hazard on a light candidate of its own."""
    file = folder / "hazards-light.jsonl"
    strike_all(hazards, seeds, file, lambda one, seed: befallen(folder / "hazards", one, seed))
    found = rows_of(file, Struck)
    if write:
        write_hazards("light", HAZARDS, found)
    return 1 if any(row.objections for row in found) else 0


def strike_server(hazards: list[Hazard[Emulated]], seeds: range, folder: Path, *, write: bool) -> int:
    """All hazards on one virtual candidate, each of which must leave it unchanged."""
    file = folder / "hazards-virtual.jsonl"
    if to_do(hazards, seeds, file):
        with emulated(folder / "virtual") as place:
            strike_all(hazards, seeds, file, lambda one, seed: befallen_server(place, one, seed))
    found = rows_of(file, Struck)
    if write:
        write_hazards("virtual", VIRTUAL_HAZARDS, found)
    return 1 if any(row.objections for row in found) else 0


def to_do(hazards: Sequence[Hazard[P]], seeds: range, file: Path) -> list[tuple[Hazard[P], int]]:
    """Returns what has no row yet; every hazard once before any is struck again."""
    done = {(row.kind, row.seed) for row in rows_of(file, Struck)}
    return [(one, seed) for seed in seeds for one in hazards if (one.kind, seed) not in done]


def strike_all(
    hazards: Sequence[Hazard[P]], seeds: range, file: Path, befall: Callable[[Hazard[P], int], Struck]
) -> None:
    """Makes what has no row yet; each row is kept as its run ends."""
    for hazard, seed in to_do(hazards, seeds, file):
        began_s = time.monotonic()
        found = replace(befall(hazard, seed), seconds=round(time.monotonic() - began_s, 1))
        add_rows(file, [asdict(found)])
        said = "; ".join(found.objections) or "nothing to object"
        right = " or ".join(found.right)
        print(
            f"{hazard.kind}, seed {seed}: {found.outcome} ({right} is right; {found.seconds:.0f} s): {said}", flush=True
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
