"""`daq-bench`: the commands of `python -m rig` under a name that pip installs.

The bench works on a checkout: its inventory, roles, suites and native programs are no Python packages. An installed `daq-bench` hands
over to the Python of the checkout that the user stands in; elsewhere it says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HELP = """\
usage: daq-bench COMMAND ...

Qualifies DAQ storage servers. Every command (qualify, discover, doctor, validate, report, ...) needs the bench's checkout, with its
inventory, roles, suites and native programs: stand in one, set up by `make setup`. `daq-bench --help` lists the commands there, and
`eval "$(daq-bench completion)"` completes them in bash.
"""


def is_checkout(folder: Path) -> bool:
    return (folder / "inventory" / "metrics.yml").is_file() and (folder / "robot-suites" / "rig").is_dir()


def main() -> int:
    """The console script. Returns 2 where there is no checkout to work on."""
    if is_checkout(Path(__file__).resolve().parents[2]):
        from rig.cli import main as run

        return run()
    here = Path.cwd()
    checkout = next((folder for folder in (here, *here.parents) if is_checkout(folder)), None)
    if checkout is None:
        asked = sys.argv[1:] in (["-h"], ["--help"])
        print(HELP, end="", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    python = checkout / ".venv" / "bin" / "python"
    if not python.is_file():
        print(f"error: {checkout} is not set up yet: run `make setup` there", file=sys.stderr)
        return 2
    # Our own packages are older or newer than the checkout's: only its own Python knows which belong together.
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "DAQ_BENCH_NAME": "daq-bench",
    }
    return os.execve(python, [str(python), "-m", "rig", *sys.argv[1:]], environment)
