"""`daq-bench`: the commands of the bench under a name that pip installs.

In a checkout they are that checkout's, by its own Python, wherever `daq-bench` was installed: our own packages may be older or newer.
Elsewhere a wheel does what needs no candidate by the files that it brought (setup.py), and says so of the rest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from daq_bench.bench_model.base.places import IN_CHECKOUT, is_checkout


def main() -> int:
    """The console script. Returns 2 in a checkout that is not set up."""
    here = Path.cwd()
    checkout = next((folder for folder in (here, *here.parents) if is_checkout(folder)), None)
    if not IN_CHECKOUT and checkout is not None:
        return _hand_over(checkout)
    from daq_bench.rig.cli import main as run

    return run()


def _hand_over(checkout: Path) -> int:
    python = checkout / ".venv" / "bin" / "python"
    if not python.is_file():
        print(f"error: {checkout} is not set up yet: run `make setup` there", file=sys.stderr)
        return 2
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "DAQ_BENCH_NAME": "daq-bench",
    }
    return os.execve(python, [str(python), "-m", "daq_bench.rig", *sys.argv[1:]], environment)
