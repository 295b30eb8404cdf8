"""Words that a shell offers while somebody types `daq-bench ...`: commands, options, choices, and names of the laboratory.

The shell's script (rig.cli.completion) gives the table of arguments in a variable, so that no command's module is loaded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.catalogue import INVENTORY, names

COMMAND, VARIABLE = "complete", "DAQ_BENCH_COMPLETION"
FILES = "<files>"  # the shell's own affair
# The names that `daq-bench list` gives, by the option or positional argument that takes it. In a list there may be several, with commas.
KINDS = {
    "--candidate": "<candidates>",
    "--candidates": "<candidates>",
    "--scenario": "<scenarios>",
    "--requirement": "<requirements>",
    "--target": "<targets>",
    "candidate": "<candidates>",
    "run": "<runs>",
}
SEVERAL = "--candidates"
HELP_S_MAX = 20.0
Table = dict[str, dict[str, list[str]] | None]


def main(words: Sequence[str]) -> int:
    """Prints what may stand in the place of the last word, one a line; nothing where that is a file, or unknown."""
    table: Table = json.loads(os.environ.get(VARIABLE) or "{}")
    for text in dict.fromkeys(offered(table, list(words)[1:] or [""])):
        print(text)
    return 0


def offered(table: Table, words: list[str]) -> Iterator[str]:
    """`words` begin with the command. Bash parts `--option=value` at the equals sign, other shells leave it whole."""
    *before, word = words
    if not before:
        yield from (name for name in (*table, "--version", "--help") if name.startswith(word))
        return
    arguments = table.get(before[0])
    if arguments is None:
        arguments = _of_program(before[0]) if before[0] in table else {}
    lead = ""
    if word == "=" or (len(before) > 1 and before[-1] == "="):
        option, word = before[-1 if word == "=" else -2], word.removeprefix("=")
    elif word.startswith("-") and "=" in word:
        option, _, word = word.partition("=")
        lead = f"{option}="
    elif word.startswith("-"):
        yield from (option for option in arguments if option.startswith(word) and option)
        return
    else:
        option = before[-1] if arguments.get(before[-1]) and before[-1] else ""
    if option == SEVERAL and "," in word:
        some, _, word = word.rpartition(",")
        lead += f"{some},"
    for value in _values(arguments.get(option, []), before):
        if value.startswith(word):
            yield f"{lead}{value}"


def _values(told: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    for one in told:
        if one.startswith("<"):
            kind = one.strip("<>")
            inventory, candidate = Path(_given(before, "--inventory") or INVENTORY / "lab.yml"), None
            if kind == "targets":
                candidate = _given(before, "--candidate") or "this-machine"
            try:
                yield from names(kind, inventory, candidate) if one != FILES else ()
            except (
                BenchError,
                OSError,
            ):  # whoever runs the command reads what is wrong; a half-typed line has no place for it
                return
        else:
            yield one


def _given(before: Sequence[str], option: str) -> str | None:
    """The value that an option was given earlier in the line, however it is parted."""
    parts = [
        part for word in before for part in (word.split("=", 1) if word.startswith("--") else [word]) if part != "="
    ]
    return next((value for name, value in pairwise(parts) if name == option), None)


def _of_program(name: str) -> dict[str, list[str]]:
    """Options and sub-commands as the program's own help names them."""
    try:
        asked = [sys.executable, "-m", "daq_bench.rig", name, "--help"]
        text = subprocess.run(asked, capture_output=True, text=True, timeout=HELP_S_MAX, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = {option: [KINDS.get(option, FILES)] for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}
    commands = re.search(r"\{([a-z][a-z,-]*)\}", text)
    return found | {"": commands[1].split(",") if commands else [FILES]}
