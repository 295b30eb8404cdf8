"""The result that an analysis takes from events: histograms that add up, so that it does not matter which worker read which file. Pure.

`sparse`: one variable, one histogram. `full`: a histogram of every variable of every event, a check of each event's total energy against
its tracks, and the mass of the two hardest leptons where their charges are opposite."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import awkward as ak
import numpy as np
import numpy.typing as npt

from daq_bench.analysis_reader.shape import (
    BINS,
    FULL,
    GLOBALS,
    HIGH,
    LEPTONS,
    LOW,
    SPARSE,
    SPARSE_VARIABLE,
    track_names,
)

Counts = npt.NDArray[np.int64]
VARIABLE_BINS = 100
RANGES: dict[str, tuple[float, float]] = {
    "run": (0, 1000), "event": (0, 1e6), "vertices": (0, 100), "met": (0, 200), "met_phi": (-3.2, 3.2), "weight": (0, 2),
    "total_energy": (0, 2000), "lep_pt": (0, 200), "lep_eta": (-6, 6), "lep_phi": (-3.2, 3.2), "lep_charge": (-2, 2), "trk_energy": (0, 20),
}  # fmt: skip
TRACK_RANGE = (-6.0, 6.0)
ENERGY_TOLERANCE = 1e-4  # of a float32 sum over some hundred tracks


def names_of(analysis: str) -> list[str]:
    """The variables that the analysis reads, jagged ones as collection_name."""
    if analysis == SPARSE:
        return [SPARSE_VARIABLE]
    return [*GLOBALS, *(f"lep_{name}" for name in LEPTONS), *(f"trk_{name}" for name in track_names(FULL))]


def histogram(name: str, values: npt.NDArray[Any]) -> Counts:
    """Counts in VARIABLE_BINS bins of the variable's range, then below and above it."""
    low, high = RANGES.get(name, TRACK_RANGE)
    counts, _ = np.histogram(values, VARIABLE_BINS, (low, high))
    outside = [np.count_nonzero(values < low), np.count_nonzero(values > high)]
    return np.concatenate([counts, outside]).astype(np.int64)


def pair_masses(columns: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Invariant masses in GeV of the two hardest leptons of each event where their charges are opposite (massless leptons)."""
    order = ak.argsort(columns["lep_pt"], axis=1, ascending=False)
    hardest = {name: columns[f"lep_{name}"][order][:, :2] for name in LEPTONS}
    one, two = (
        {name: ak.to_numpy(column[:, place]).astype(np.float64) for name, column in hardest.items()} for place in (0, 1)
    )
    opposite = one["charge"] * two["charge"] < 0
    squared = 2 * one["pt"] * two["pt"] * (np.cosh(one["eta"] - two["eta"]) - np.cos(one["phi"] - two["phi"]))
    found: npt.NDArray[np.float64] = np.sqrt(squared[opposite])
    return found


def mass_histogram(values: npt.NDArray[np.float64]) -> Counts:
    return np.histogram(values, BINS, (LOW, HIGH))[0].astype(np.int64)


@dataclass
class Tally:
    """Sums over events. `selected`: opposite-charge pairs; `balanced`: events whose total energy is that of their tracks."""

    entries: int = 0
    selected: int = 0
    balanced: int = 0
    mass: Counts = field(default_factory=lambda: np.zeros(BINS, np.int64))
    variables: dict[str, Counts] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.entries += other.entries
        self.selected += other.selected
        self.balanced += other.balanced
        self.mass = self.mass + other.mass
        for name, counts in other.variables.items():
            self.variables[name] = self.variables[name] + counts if name in self.variables else counts

    def digest(self) -> str:
        """SHA-256 of every count but those of the mass: equal for equal results, whichever workers found them in whatever order."""
        found = hashlib.sha256(f"{self.entries}".encode())
        for name in sorted(self.variables):
            found.update(name.encode() + self.variables[name].astype("<i8").tobytes())
        return found.hexdigest()


def tally(analysis: str, columns: Mapping[str, Any]) -> Tally:
    """Returns the tally of some events. `columns` by the names of `names_of`."""
    found = Tally(entries=len(columns[SPARSE_VARIABLE]))
    for name in names_of(analysis):
        values = columns[name]
        flat = ak.to_numpy(ak.flatten(values)) if getattr(values, "ndim", 1) > 1 else np.asarray(values)
        found.variables[name] = histogram(name, flat)
    if analysis == FULL:
        total, parts = (
            np.asarray(columns["total_energy"], np.float64),
            ak.to_numpy(ak.sum(columns["trk_energy"], axis=1)),
        )
        found.balanced = int(np.count_nonzero(np.abs(parts - total) <= ENERGY_TOLERANCE * np.maximum(total, 1)))
        values = pair_masses(columns)
        found.selected, found.mass = len(values), mass_histogram(values)
    return found
