"""Asks the door of `daq-bench check-bundle` for runs that are to be shown or ranked.

Reports never import the part of the house that reaches hosts: its command `admit` is a program of its own, and says in a typed document
what it found of each bundle by the reader's own trust."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import strict
from daq_bench.bench_model.documents.admission import Admission, Admissions
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.nights.night import LeftOut, Night

PROGRAM = (sys.executable, "-m", "daq_bench.rig", "admit", "--json")
TRUST = ("inventory", "own_scenario", "own_requirement")  # the options below


@dataclass(frozen=True)
class Trust:
    """The reader's own inventory, scenario and requirements; the bench's where none is named. ALLOWED_SIGNERS is in the environment."""

    inventory: Path | None = None
    scenario: str | None = None
    requirement: str | None = None
    accept_unsigned: bool = False

    @property
    def words(self) -> list[str]:
        """The options of the door's command."""
        told = {"--inventory": self.inventory, "--scenario": self.scenario, "--requirement": self.requirement}
        return [str(word) for pair in told.items() if pair[1] is not None for word in pair]


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--inventory", type=Path, metavar="FILE", help="your own, which names the keys that you trust")
    parser.add_argument(
        "--own-scenario", metavar="FILE", help="your own scenario, instead of inventory/scenarios/<id>.yml"
    )
    parser.add_argument(
        "--own-requirement", metavar="FILE", help="your own, instead of inventory/requirements/<id>.yml"
    )


def trust_of(chosen: argparse.Namespace) -> Trust:
    accepts = bool(getattr(chosen, "accept_unsigned", False))
    return Trust(chosen.inventory, chosen.own_scenario, chosen.own_requirement, accepts)


def admissions(bundles: Sequence[Path], trust: Trust) -> dict[Path, Admission]:
    """Returns what the door says of each. Raises BenchError where it cannot be asked."""
    if not bundles:
        return {}
    asked = json.dumps([str(bundle) for bundle in bundles])
    done = subprocess.run([*PROGRAM, *trust.words], input=asked, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        said = done.stderr.strip().removeprefix("error: ") or f"it ended with status {done.returncode}"
        raise BenchError(f"the runs cannot be checked: {said[-500:]}")
    found = read(strict(done.stdout), Admissions, "the answer of the door").runs
    return dict(zip(bundles, found, strict=True))


def admitted(
    nights: Sequence[Night], left_out: Sequence[LeftOut], trust: Trust
) -> tuple[list[Night], list[LeftOut], dict[Path, Admission]]:
    """Runs that others may rest on, and all that are left out, those that the door refuses among them."""
    known = admissions([night.path for night in nights], trust)
    refused = [LeftOut(night.path.name, known[night.path].refusal) for night in nights if known[night.path].refusal]
    return [night for night in nights if not known[night.path].refusal], [*left_out, *refused], known
