"""A command, and the arguments and words that several of them share."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.terminal import printable_lines
from daq_bench.rig.checking import agreement


@dataclass(frozen=True)
class Command:
    """`help` is its line in the list of commands, `arguments` adds its arguments, `run` returns the exit status.

    `needs_checkout`: it starts roles, suites or native programs, which no wheel holds."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    needs_checkout: bool = False


def require_checkout(layout: Layout, command: str) -> None:
    """Raises BenchError for a command that an installed wheel alone cannot do."""
    if not layout.is_checkout:
        raise BenchError(
            f"`{command}` needs a checkout of the bench: its roles, suites and native programs are in no wheel. Stand in one that "
            "`make setup` has set up; what needs no candidate (validate, discover, doctor, judge, report, compare, ...) works here"
        )


def no_arguments(command: argparse.ArgumentParser) -> None:
    """For a command that takes none."""


def add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", type=Path, help="runs/<run-id>; `daq-bench list runs` lists them")


def positive(text: str) -> float:
    """A number above zero, for argparse."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number. Write one such as 0.5") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no finite number")
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
    return value


def count(text: str) -> int:
    """A whole number of 1 or more, for argparse."""
    if not text.isdecimal() or int(text[:9]) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text[:9])


def name_list(text: str) -> tuple[str, ...]:
    """Names with commas between them, each once, for argparse. An empty list must not read as no list, which stands for all."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name. Write A,B")
    for name in found:
        if found.count(name) > 1:
            raise argparse.ArgumentTypeError(f"{text!r} names {name!r} twice")
    return found


def add_jobs(command: argparse.ArgumentParser, default: int = 1) -> None:
    text = f"candidates at the same time ({default})"
    command.add_argument("--jobs", type=count, default=default, metavar="N", help=text)


def port(text: str) -> int:
    """A TCP or UDP port, for argparse."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 1 to 65535")
    return int(text)


def scale(text: str) -> float:
    """A share of one unit's load, for argparse."""
    value = positive(text)
    if value > 1.2:
        raise argparse.ArgumentTypeError(f"{text} is above 1.2; 1 is the whole load of one readout unit")
    return value


def challenge(text: str) -> str:
    """A nonce, for argparse."""
    try:
        return agreement.challenge(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_json(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--json", action="store_true", help=f"{what} as JSON on standard output")


def add_load(command: argparse.ArgumentParser) -> None:
    """The arguments that change how much is asked for, and of which target."""
    command.add_argument(
        "--scale", type=scale, help="share of the real load, instead of the scenario's (1: one whole unit)"
    )
    command.add_argument(
        "--duration", type=positive, metavar="SECONDS", help="length of the record in s, instead of the scenario's"
    )
    command.add_argument(
        "--target",
        metavar="NAME|DIRECTORY",
        help="one of the candidate's targets, or a folder instead of the inventory's",
    )


def add_yes(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--yes", action="store_true", help="agree to more than 1 drive write, or 40 GB on a machine's own file system"
    )


def say(options: argparse.Namespace, text: str) -> None:
    """For people: standard output is the document's where one was asked for."""
    print(printable_lines(text), file=sys.stderr if options.json else sys.stdout)


def print_document(options: argparse.Namespace, document: object) -> None:
    """No character of it moves a terminal's cursor: JSON has an escape for each."""
    if options.json:
        lines = json.dumps(document, indent=1, ensure_ascii=False).split("\n")
        print("\n".join(line if line.isprintable() else _escaped(line) for line in lines))


def _escaped(text: str) -> str:
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def add_inventory(command: argparse.ArgumentParser) -> None:
    command.add_argument("--inventory", type=Path, metavar="FILE", help="the caller's own (inventory/lab.yml)")


def shown(path: Path) -> str:
    """Relative to where the user stands, if the file is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
