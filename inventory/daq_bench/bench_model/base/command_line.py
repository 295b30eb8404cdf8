"""The parser of every command of ours: an option is its whole name, and whoever misspells a name reads the nearest ones.

What runs on a candidate imports nothing of ours: its parsers say allow_abbrev=False themselves (robot-suites/tests/test_parsers.py)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from daq_bench.bench_model.base.nearest import nearest


class Parser(argparse.ArgumentParser):
    """Takes no abbreviation: `--scal` may be a slip for something else. Its sub-commands have parsers of the same class."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Knows all: the parser that was given an unknown option is the one that knows which is meant."""
        found, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            if word.startswith("-") and word != "--":
                option = word.partition("=")[0]
                self.error(
                    f"there is no option {option}. {nearest(option, self._option_string_actions, f'{self.prog} --help')}"
                )
        if unknown:
            self.error(f"{' '.join(unknown)!r} is too much: nothing more was expected")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """One message, with where to read on. The usage, which may be a screenful, is for --help."""
        more = "" if f"`{self.prog} --help`" in message else f". `{self.prog} --help` tells more"
        self.exit(2, f"{self.prog}: error: {message}{more}\n".replace("?. `", "? `"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = "there is no command" if isinstance(action, argparse._SubParsersAction) else "there is no"
            raise argparse.ArgumentError(_named(action), f"{what} {value!r}. {nearest(str(value), action.choices)}")


def _named(action: argparse.Action) -> argparse.Action | None:
    """The action where its name says something: `argument command:` before "there is no command" would not."""
    return None if isinstance(action, argparse._SubParsersAction) else action
