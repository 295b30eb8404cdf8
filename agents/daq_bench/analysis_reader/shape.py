"""The shape of a set of events: how many, in how many files, with which variables, and the physics that was put into them.

Two kinds, after sections 2.1 of Panitkin et al. (2009): `sparse`, about 1 kB an event with global information and tracks, of which one
variable is read; `full`, an analysis format of many variables, all of which are read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SPARSE, FULL = "sparse", "full"
TTREE, RNTUPLE = "ttree", "rntuple"
TREE = "events"
FLOAT_BYTES = 4
GLOBAL_BYTES = 6 * FLOAT_BYTES + 8  # run, vertices, met, met_phi, weight, total_energy; the event's number has 8
LEPTON_VARIABLES = 4
LEPTONS_PER_EVENT = 2.5
TRACK_VARIABLES = {SPARSE: 10, FULL: 30}
GLOBALS = ("run", "event", "vertices", "met", "met_phi", "weight", "total_energy")
LEPTONS = ("pt", "eta", "phi", "charge")
SPARSE_VARIABLE = "total_energy"


@dataclass(frozen=True)
class Resonance:
    """Truth of the mass spectrum of opposite-charge lepton pairs, in GeV. `signal_share`: of the opposite-charge events.

    Signal: Gaussian of `mass` and `width`; background: exponential of `slope`; both inside LOW ... HIGH."""

    mass: float = 91.19
    width: float = 2.5
    slope: float = 30.0
    signal_share: float = 0.3
    opposite_share: float = 0.8


LOW, HIGH = 60.0, 120.0
BINS = 120


@dataclass(frozen=True)
class Shape:
    """`event_bytes`: mean size of an event in memory, uncompressed, which sets the mean number of tracks; the kind sets the variables."""

    kind: str
    layout: str
    events: int
    files: int
    event_bytes: int
    cluster_events: int
    compression: str
    seed: int
    truth: Resonance = Resonance()

    @property
    def track_variables(self) -> int:
        return TRACK_VARIABLES[self.kind]

    @property
    def mean_tracks(self) -> float:
        """Mean multiplicity that gives `event_bytes`."""
        rest = self.event_bytes - GLOBAL_BYTES - LEPTONS_PER_EVENT * LEPTON_VARIABLES * FLOAT_BYTES
        return rest / (self.track_variables * FLOAT_BYTES)

    @property
    def raw_bytes(self) -> int:
        """Size of the whole set, uncompressed."""
        return self.events * self.event_bytes

    def events_of(self, file: int) -> int:
        """Number of events of file number `file` (from 0): dealt out as evenly as possible."""
        return self.events // self.files + (1 if file < self.events % self.files else 0)

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def of(document: dict[str, Any]) -> Shape:
        return Shape(**{**document, "truth": Resonance(**document["truth"])})


def track_names(kind: str) -> list[str]:
    """px, py, pz and energy, and as many more as the kind has."""
    return ["px", "py", "pz", "energy", *(f"q{number:02d}" for number in range(TRACK_VARIABLES[kind] - 4))]
