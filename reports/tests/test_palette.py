"""The palette by numbers: apart for every kind of sight, and apart in a grey copy; nothing is coded by colour alone.

Colour-blindness is simulated at full severity after Machado, Oliveira and Fernandes (2009); distances are CIE 1976 in CIELAB (D65)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from daq_bench.bench_report.document.palette import SERIES

Vector = NDArray[np.float64]

SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
APART_MIN = 19.5  # 2.3 is a just noticeable difference; thin lines need several times as much
LIGHTNESS_STEP_MIN = 4.5
CONTRAST_MIN = 3.0  # WCAG 2.1, 1.4.11: graphical objects against white


def linear(colour: str) -> Vector:
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.asarray(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4))


def lab(light: Vector) -> Vector:
    ratio = TO_XYZ @ np.clip(light, 0, 1) / WHITE
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


COLOURS = [colour for colour, _, _ in SERIES]


@pytest.mark.parametrize("sight", SIGHT)
def test_every_pair_of_colours_is_apart(sight: str) -> None:
    seen = {colour: lab(SIGHT[sight] @ linear(colour)) for colour in COLOURS}
    distances = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(COLOURS, 2)}
    assert min(distances.values()) >= APART_MIN, min(distances, key=lambda pair: distances[pair])


def test_a_grey_copy_keeps_them_apart() -> None:
    lightness = sorted(float(lab(linear(colour))[0]) for colour in COLOURS)
    assert min(np.diff(lightness)) >= LIGHTNESS_STEP_MIN


def test_each_stands_out_from_the_paper() -> None:
    for colour in COLOURS:
        luminance = float(TO_XYZ[1] @ linear(colour))
        assert 1.05 / (luminance + 0.05) >= CONTRAST_MIN, colour


def test_each_series_has_dashes_and_a_marker_of_its_own() -> None:
    assert len({str(dashes) for _, dashes, _ in SERIES}) == len({marker for _, _, marker in SERIES}) == len(SERIES)
