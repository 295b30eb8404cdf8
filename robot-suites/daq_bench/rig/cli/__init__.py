"""Qualifies data-acquisition storage servers.

Exit status of qualify: 0 PASS, or a declared rehearsal, which missed no mandatory requirement; 1 FAIL; 2 ERROR; 3 INADMISSIBLE for a
reason that nobody declared (telemetry gap, source too slow, wrong machine); 130 interrupted.
Exit status of provision and verify: 0 every setting is as asked (or the machine has none); 4 drift: one is not; 2 the command failed.
With --json a command prints one JSON document on standard output, {"error": ...} where it fails; what people read goes to stderr."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from daq_bench.bench_model.base.calling import by_make, variable
from daq_bench.bench_model.base.command_line import Parser, reader_has_gone
from daq_bench.bench_model.base.errors import BenchError, in_words, writable
from daq_bench.bench_model.documents import verdict as outcomes
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.terminal import printable, printable_lines
from daq_bench.rig.cli import bundles, candidate, discovery, nights, planning, profiles, runs, server, watching
from daq_bench.rig.cli.arguments import Command, require_checkout
from daq_bench.rig.cli.candidate import FirmwareLeftError
from daq_bench.rig.cli.completion import NAME, SHELLS, completion
from daq_bench.rig.cli.exits import EXIT, FIRMWARE_LEFT, INTERRUPTED
from daq_bench.rig.cli.programs import PROGRAMS, run_program

LINK_LOOP = "Symlink loop from"  # how pathlib begins the error of a path that leads back to itself, which is no OSError
# In the order of the help.
COMMANDS = {
    **runs.COMMANDS,
    **watching.COMMANDS,
    **planning.COMMANDS,
    **candidate.COMMANDS,
    **discovery.COMMANDS,
    **profiles.COMMANDS,
    **bundles.COMMANDS,
    **nights.COMMANDS,
    **server.COMMANDS,
}


def _print_completion(options: argparse.Namespace) -> int:
    found = next(action.choices for action in parser()._actions if action.dest == "command")
    own = {name: command for name, command in dict(found or {}).items() if name in COMMANDS}
    print(completion(options.shell, own, PROGRAMS), end="")
    return 0


def _add_completion(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", nargs="?", choices=list(SHELLS), default="bash", help="(bash)")


COMMANDS["completion"] = Command(
    "print the completion script for bash, zsh or fish", _add_completion, _print_completion
)


class _Parser(Parser):
    """Whoever types `make qualify DURATION=x` has never heard of --duration: an error names both."""

    def error(self, message: str) -> NoReturn:
        if by_make():
            message = re.sub(r"^argument (--[a-z-]+)", lambda found: f"{found[0]} ({variable(found[1])}=)", message)
        super().error(message)


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog=os.environ.get("DAQ_BENCH_NAME")
        or (NAME if Path(sys.argv[0]).name == NAME else "python -m daq_bench.rig"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the release and the checkout's commit, and end")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        command.arguments(commands.add_parser(name, help=command.help))
    for name, program in PROGRAMS.items():
        commands.add_parser(name, help=program.help, add_help=False)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; every error that a user can mend is one message without a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    options = argparse.Namespace()
    try:
        if odd := next((word for word in words if writable(word) != word), None):
            raise BenchError(
                f"{writable(odd)}: the name is no UTF-8, and no document can name it. Rename the file or folder"
            )
        if words and words[0] in PROGRAMS:
            return run_program(words)
        options = parser().parse_args(words)
        command = COMMANDS[options.command]
        if command.needs_checkout:
            require_checkout(Layout(), options.command)
        return command.run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # Python would end with 1, which is the status of FAIL
        if isinstance(error, BrokenPipeError) and reader_has_gone():
            raise
        is_told = isinstance(error, BenchError | OSError) or str(error).startswith(LINK_LOOP)
        text = in_words(error)
        if text.startswith(LINK_LOOP):
            text = f"{text}: the link leads back to itself. Name the folder itself"
        if not is_told:
            print(printable_lines(traceback.format_exc()), file=sys.stderr)
            text = f"the bench has a fault: {type(error).__name__}: {text}. Report it with the lines above"
        print(f"error: {printable(text)}", file=sys.stderr)
        if getattr(options, "json", False):
            with contextlib.suppress(OSError):  # where nothing can be printed the status is left
                print(json.dumps({"error": text}))
        return FIRMWARE_LEFT if isinstance(error, FirmwareLeftError) else EXIT[outcomes.ERROR]
