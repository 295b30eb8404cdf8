"""Command line: qualify, resume, provision, verify, restore, discover, doctor, validate,
judge, check-bundle, report, replay, influx, nightly, baseline.

Exit status of qualify: 0 PASS, or a declared rehearsal in which nothing mandatory was missed; 1 FAIL; 2 ERROR; 3 INADMISSIBLE for a
reason that nobody declared (telemetry gap, source too slow, wrong machine); 130 interrupted.
Exit status of provision and verify: 0 every setting is as asked (or the machine has none); 4 drift: one is not; 2 the command failed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from bench_model.base.errors import BenchError
from bench_model.verdict import verdict as outcomes
from rig.checking.check_bundle import printable
from rig.cli import bundles, candidate, discovery, nights, profiles, runs, server
from rig.cli.arguments import Command, no_arguments
from rig.cli.completion import NAME, completion
from rig.cli.exits import EXIT, INTERRUPTED

# In the order of the help.
COMMANDS = {
    **runs.COMMANDS,
    **candidate.COMMANDS,
    **discovery.COMMANDS,
    **profiles.COMMANDS,
    **bundles.COMMANDS,
    **nights.COMMANDS,
    **server.COMMANDS,
}


def _print_completion(options: argparse.Namespace) -> int:
    commands = next(action.choices for action in parser()._actions if action.dest == "command")
    print(completion(dict(commands or {})), end="")
    return 0


COMMANDS["completion"] = Command("print the completion script for bash", no_arguments, _print_completion)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog=os.environ.get("DAQ_BENCH_NAME") or (NAME if Path(sys.argv[0]).name == NAME else "python -m rig"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.arguments(commands.add_parser(name, help=command.help))
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; every error that a user can mend is one message without a traceback."""
    options = parser().parse_args(arguments)
    try:
        return COMMANDS[options.command].run(options)
    except BenchError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return EXIT[outcomes.ERROR]
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
