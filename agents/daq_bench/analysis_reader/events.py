"""Events with a known truth, from a seed: pairs of leptons from a resonance on a background, in events full of tracks. Pure.

A pair's mass is drawn first; the two leptons are its isotropic two-body decay (massless), boosted with the pair's own momentum. A third,
softer lepton of random charge stands in half of the events. Same-charge pairs, which an analysis rejects, have masses of their own."""

from __future__ import annotations

import math
from typing import Any

import awkward as ak
import numpy as np
import numpy.typing as npt

from daq_bench.analysis_reader.shape import HIGH, LOW, Resonance, Shape, track_names

Floats = npt.NDArray[np.float64]
MANTISSA_BITS = (
    12  # kept of a track variable's 23: what analysis formats do, and what makes files compress as theirs do
)
MASK = np.uint32((0xFFFFFFFF << (23 - MANTISSA_BITS)) & 0xFFFFFFFF)


def masses(random: np.random.Generator, count: int, truth: Resonance) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(mass in GeV, whether it is signal) of `count` opposite-charge pairs."""
    signal = random.random(count) < truth.signal_share
    scale = math.exp(-(HIGH - LOW) / truth.slope)
    background = LOW - truth.slope * np.log(1 - random.random(count) * (1 - scale))
    peak = random.normal(truth.mass, truth.width, count)
    return np.where(signal, peak, background), signal


def decay(random: np.random.Generator, mass: Floats) -> tuple[Floats, Floats]:
    """Four-momenta (E, px, py, pz), shape (4, n), of the two massless leptons of pairs of `mass` in GeV."""
    count = len(mass)
    cosine, angle = random.uniform(-1, 1, count), random.uniform(0, 2 * math.pi, count)
    sine = np.sqrt(1 - cosine**2)
    half = mass / 2
    direction = np.stack([sine * np.cos(angle), sine * np.sin(angle), cosine])
    pt, phi, rapidity = (
        random.exponential(15.0, count),
        random.uniform(0, 2 * math.pi, count),
        random.normal(0, 0.8, count),
    )
    across = np.sqrt(mass**2 + pt**2)
    pair = np.stack([across * np.cosh(rapidity), pt * np.cos(phi), pt * np.sin(phi), across * np.sinh(rapidity)])
    beta, gamma = pair[1:] / pair[0], pair[0] / mass
    found = []
    for sign in (1.0, -1.0):
        momentum = sign * half * direction
        along = (beta * momentum).sum(axis=0)
        factor = gamma**2 / (gamma + 1) * along + gamma * half
        found.append(np.concatenate([(gamma * (half + along))[None], momentum + factor * beta]))
    return found[0], found[1]


def to_pt_eta_phi(four: Floats) -> Floats:
    """(pt, eta, phi), shape (3, n), of massless (E, px, py, pz)."""
    pt = np.hypot(four[1], four[2])
    return np.stack([pt, np.arcsinh(four[3] / pt), np.arctan2(four[2], four[1])])


def truncated(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """`values` with MANTISSA_BITS of mantissa."""
    return (values.view(np.uint32) & MASK).view(np.float32)


def leptons(random: np.random.Generator, count: int, truth: Resonance) -> tuple[Any, dict[str, Any]]:
    """(jagged leptons, truth: {opposite, signal, mass}) of `count` events; `mass` of the opposite-charge ones."""
    opposite = random.random(count) < truth.opposite_share
    mass, signal = masses(random, count, truth)
    mass = np.where(opposite, mass, random.uniform(LOW, HIGH, count))
    first, second = (to_pt_eta_phi(four) for four in decay(random, mass))
    sign = random.choice([-1, 1], count)
    third = random.random(count) < 0.5
    softest = np.minimum(first[0], second[0]) * random.uniform(0.05, 0.95, count)
    extra = np.stack([softest, random.normal(0, 1.5, count), random.uniform(-math.pi, math.pi, count)])
    values = np.stack([first, second, extra], axis=2).reshape(3, -1)
    charges = np.stack([sign, np.where(opposite, -sign, sign), random.choice([-1, 1], count)], axis=1).reshape(-1)
    # The order within an event is by chance, so that an analysis has to look for the hardest two.
    order = np.argsort(random.random((count, 3)), axis=1) + 3 * np.arange(count)[:, None]
    keep = np.stack([np.ones(count, bool), np.ones(count, bool), third], axis=1).reshape(-1)[order.reshape(-1)]
    chosen = order.reshape(-1)[keep]
    counts = 2 + third.astype(np.int64)
    fields = {
        name: ak.unflatten(values[index][chosen].astype(np.float32), counts)
        for index, name in enumerate(("pt", "eta", "phi"))
    }
    fields["charge"] = ak.unflatten(charges[chosen].astype(np.int32), counts)
    inside = opposite & (mass >= LOW) & (mass < HIGH)
    return ak.zip(fields), {
        "opposite": int(opposite.sum()),
        "signal": int((inside & signal).sum()),
        "mass": mass[inside],
    }


def tracks(random: np.random.Generator, count: int, shape: Shape) -> Any:
    """Jagged tracks; energy is that of massless px, py, pz."""
    counts = random.poisson(shape.mean_tracks, count)
    total = int(counts.sum())
    momentum = [truncated(random.normal(0, scale, total).astype(np.float32)) for scale in (1.0, 1.0, 3.0)]
    energy = truncated(np.sqrt(sum(part.astype(np.float64) ** 2 for part in momentum)).astype(np.float32))
    columns = [*momentum, energy]
    columns += [truncated(random.normal(0, 1, total).astype(np.float32)) for _ in range(shape.track_variables - 4)]
    return ak.zip(
        {name: ak.unflatten(column, counts) for name, column in zip(track_names(shape.kind), columns, strict=False)}
    )


def cluster(shape: Shape, file: int, first: int, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arrays by name, truth of the leptons) of `count` events of file number `file` from its event `first` on.

    The same shape, file and first event give the same arrays, whichever process asks."""
    random = np.random.default_rng([shape.seed, file, first])
    lep, truth = leptons(random, count, shape.truth)
    trk = tracks(random, count, shape)
    arrays: dict[str, Any] = {
        "run": np.full(count, 1 + file, np.int32),
        "event": np.arange(first, first + count, dtype=np.int64),
        "vertices": random.poisson(20, count).astype(np.int32),
        "met": random.exponential(20.0, count).astype(np.float32),
        "met_phi": random.uniform(-math.pi, math.pi, count).astype(np.float32),
        "weight": random.normal(1.0, 0.1, count).astype(np.float32),
        "total_energy": ak.to_numpy(ak.sum(trk["energy"], axis=1)).astype(np.float32),
        "lep": lep,
        "trk": trk,
    }
    return arrays, truth
