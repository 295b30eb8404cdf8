"""The one error that a user of the report's command line sees.

Promise: its text names the file, the field where there is one, what was found there, and a remedy if one is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from daq_bench.bench_model.base.errors import BenchError


class BundleError(BenchError):
    """A run bundle cannot be reported on: the message names the file, the field and the value."""

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{where}: {problem}" + (f". {remedy}" if remedy else ""))
        self.where = where

    def __reduce__(self) -> tuple[type[BundleError], tuple[str, str]]:
        """Lets pickle carry the error over from another process."""
        return BundleError, (self.where, str(self).removeprefix(f"{self.where}: "))


def refuse_twice(root: Path, run_id: str, earlier: Path) -> NoReturn:
    """Raises BundleError for a run that was named twice: by one path, or as two copies."""
    problem = "is named twice" if root == earlier else f"is run {run_id}, of which {earlier} is another copy"
    raise BundleError(str(root), problem, "Name each run once")
