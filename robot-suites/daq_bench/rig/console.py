"""`daq-bench`: the commands of the bench under a name that pip installs.

In a checkout they are that checkout's, by its own Python, wherever `daq-bench` was installed: our own packages may be older or newer.
Elsewhere a wheel does what needs no candidate by the files that it brought (setup.py), and says so of the rest."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

from daq_bench.bench_model.base.command_line import ended
from daq_bench.bench_model.base.places import IN_CHECKOUT, REPOSITORY, checkout_here

INTERRUPTED = 130  # as a shell says that Ctrl-C ended a command


def main() -> int:
    """The console script. Returns 2 in a checkout that is not set up."""
    if _stands_nowhere():
        return 2
    checkout = checkout_here()
    if not IN_CHECKOUT and checkout is not None:
        return _hand_over(checkout)
    return commands()


def commands() -> int:
    """Runs one command."""
    return 2 if _stands_nowhere() else ended(_command)


def _stands_nowhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        print("error: the folder that you stand in was removed. Change to one that is there", file=sys.stderr)
        return True
    return False


def _command() -> int:
    """Completion, while somebody types, does not wait for the modules of all commands."""
    words = sys.argv[1:]
    if words == ["--version"]:
        print(version())
        return 0
    if words[:1] == ["list"]:
        from daq_bench.rig.base.catalogue import main as listing

        return listing(words[1:])
    if words[:1] == ["complete"]:
        from daq_bench.rig.base.completing import main as complete

        return complete(words[1:])
    try:
        from daq_bench.rig.cli import main as run
    except KeyboardInterrupt:  # the modules take seconds on a busy machine
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return run()


def version() -> str:
    """`daq-bench 0.1.0 (git 8cc1ce25, /srv/bench)`: the release, and the commit of the checkout whose files are used."""
    release = f"daq-bench {metadata.version('daq-storage-bench')}"
    if not IN_CHECKOUT:
        return f"{release} (installed, {REPOSITORY.parent})"
    from daq_bench.rig.base.shell import LocalShell
    from daq_bench.rig.run.record import git_state

    git = git_state(LocalShell(), REPOSITORY)
    commit = (
        f"git {git.commit}{', changed since' if git.dirty else ''}" if git.commit else "its git commit is not known"
    )
    return f"{release} ({commit}, {REPOSITORY})"


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
