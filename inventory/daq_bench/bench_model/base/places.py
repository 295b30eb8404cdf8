"""The folder of the files that no Python package holds: profiles, schemas, templates, suites and the utilities of Ansible's modules.

They lie in a checkout, or, where a wheel was installed, in the copy that it brought (setup.py)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

DECIDING = ("bench_model", "candidate_kit", "workloads")  # the packages that a verdict follows from


def is_checkout(folder: Path) -> bool:
    return (folder / "inventory" / "metrics.yml").is_file() and (folder / "robot-suites" / "daq_bench" / "rig").is_dir()


def checkout_here() -> Path | None:
    """The checkout that the user stands in."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if is_checkout(folder)), None)


def deciding_folders() -> tuple[Path, ...]:
    """The folders of the packages that a verdict, and every number of a report, follows from."""
    specs = (find_spec(f"daq_bench.{name}") for name in DECIDING)
    return tuple(Path(str(spec.origin)).parent for spec in specs if spec is not None)


_AROUND = Path(__file__).resolve().parents[4]
IN_CHECKOUT = is_checkout(_AROUND)
REPOSITORY = _AROUND if IN_CHECKOUT else Path(__file__).resolve().parents[1] / "shipped"
