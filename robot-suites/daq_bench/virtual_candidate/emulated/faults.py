"""The faults in force on the drives: kept in `drive-faults.json`, because they outlive a power cycle as real ones do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from daq_bench.virtual_candidate.files import locked, read_json, write_json


@dataclass
class DriveFaults:
    """The drives' faults by serial. `throttled`: bytes per second that the drive is held to; `swapped`: the serial of the other drive that
    is in its slot."""

    throttled: dict[str, int] = field(default_factory=dict)
    pulled: list[str] = field(default_factory=list)
    failing_writes: list[str] = field(default_factory=list)
    swapped: dict[str, str] = field(default_factory=dict)


def read(directory: Path) -> DriveFaults:
    return DriveFaults(**read_json(directory / "drive-faults.json", {}))


@contextmanager
def changing(directory: Path) -> Iterator[DriveFaults]:
    """Yields the faults in force, for the caller to change; writes them back when the caller's block ended well. One caller at a time."""
    with locked(directory / "drive-faults.lock"):
        faults = read(directory)
        yield faults
        write_json(directory / "drive-faults.json", asdict(faults))
