"""The parser of every command of ours: an option is its whole name, and whoever misspells a name reads the nearest ones.

What runs on a candidate imports nothing of ours: its parsers say allow_abbrev=False themselves (robot-suites/tests/test_parsers.py)."""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from daq_bench.bench_model.base.errors import in_words
from daq_bench.bench_model.base.nearest import nearest

STANDARD_OUTPUT = 1
UNWRITTEN = 2
NO_READER = 141  # as a shell says that SIGPIPE ended a command


class Parser(argparse.ArgumentParser):
    """Takes no abbreviation: `--scal` may be a slip for something else. Its sub-commands have parsers of the same class."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self._words: list[str] = []

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Knows all: the parser that was given an unknown option is the one that knows which is meant."""
        self._words = list(sys.argv[1:] if args is None else args)
        found, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            if word.startswith("-") and word != "--":
                self._no_option(word)
        if unknown:
            self.error(f"{' '.join(unknown)!r} is too much: nothing more was expected")
        return found, unknown

    def _no_option(self, word: str) -> NoReturn:
        option = word.partition("=")[0]
        self.error(
            f"there is no option {option}. {nearest(option, self._option_string_actions, f'{self.prog} --help')}"
        )

    def _missing(self, message: str) -> str:
        """An argument is missing. A misspelt option goes first: it may be the argument that was meant. Few choices are named."""
        for word in self._words[: self._words.index("--") if "--" in self._words else None]:
            option = word.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                self._no_option(word)
        chosen = [one for one in self._actions if not one.option_strings and one.choices and one.required]
        if any(isinstance(one, argparse._SubParsersAction) for one in chosen):
            return f"no command is named. `{self.prog} --help` lists them"
        return message + "".join(f". {one.dest} is one of: {', '.join(map(str, one.choices or ()))}" for one in chosen)

    def error(self, message: str) -> NoReturn:
        """One message, with where to read on. The usage, which may be a screenful, is for --help."""
        if message.startswith("the following arguments are required"):
            message = self._missing(message)
        more = "" if f"`{self.prog} --help`" in message else f". `{self.prog} --help` tells more"
        self.exit(2, f"{self.prog}: error: {message}{more}\n".replace("?. `", "? `"))

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Refuses an empty name, which a script passes whose variable is unset: as a path it is the working folder, and as the name of a
        profile it reads as none. So no default is an empty text."""
        if action.type in (None, str, Path) and not action.choices and not arg_string.strip():
            form = " ".join((*action.option_strings[:1], str(action.metavar or action.dest.upper())))
            raise argparse.ArgumentError(
                action, f"the name is empty. Write {form}{f': {action.help}' if action.help else ''}"
            )
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = "there is no command" if isinstance(action, argparse._SubParsersAction) else "there is no"
            raise argparse.ArgumentError(_named(action), f"{what} {value!r}. {nearest(str(value), action.choices)}")


def _named(action: argparse.Action) -> argparse.Action | None:
    """The action where its name says something: `argument command:` before "there is no command" would not."""
    return None if isinstance(action, argparse._SubParsersAction) else action


def ended(command: Callable[[], int]) -> int:
    """Runs a command and writes out what it printed. Returns its status: NO_READER, without a word, where whoever read it has gone
    (`| head -1`), and UNWRITTEN, with an error, where its last words cannot be written."""
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except OSError as error:
        gone = isinstance(error, BrokenPipeError) and reader_has_gone()
        os.dup2(os.open(os.devnull, os.O_WRONLY), STANDARD_OUTPUT)  # Python writes the rest there when it ends
        if not gone:
            print(f"error: standard output: {in_words(error)}", file=sys.stderr)
        return NO_READER if gone else UNWRITTEN


def reader_has_gone() -> bool:
    """Says whether nobody is left at the other end of standard output."""
    asked = select.poll()
    asked.register(STANDARD_OUTPUT, 0)
    return any(event & select.POLLERR for _, event in asked.poll(0))
