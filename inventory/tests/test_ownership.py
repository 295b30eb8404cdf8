"""Cost of ownership: reckoned from what was measured and declared, and from nothing else."""

from __future__ import annotations

import math

import pytest

from daq_bench.bench_model.tender.buyer_files import Energy
from daq_bench.bench_model.tender.contenders import Figure
from daq_bench.bench_model.tender.ownership import ENERGY, OWNERSHIP, ownership

TARIFF = Energy(0.25, 20_000, "tariff")
PRICE = Figure(12_000.0, "offer 17")


def test_it_is_the_price_and_the_electricity() -> None:
    found = ownership(TARIFF, "EUR", PRICE, "EUR", [400.0, 600.0])
    assert found[ENERGY].value == pytest.approx(0.5 * 20_000 * 0.25)
    assert found[OWNERSHIP].value == pytest.approx(14_500)
    assert "500 W in the records of 2 runs" in found[OWNERSHIP].basis and "offer 17" in found[OWNERSHIP].basis


@pytest.mark.parametrize("watts", [[], [None], [500.0, None], [500.0, math.nan], [0.0], [-5.0]])
def test_power_that_was_not_measured_in_each_run_has_no_cost(watts: list[float | None]) -> None:
    found = ownership(TARIFF, "EUR", PRICE, "EUR", watts)
    assert (found[ENERGY].value, found[OWNERSHIP].value) == (None, None)
    assert "was not measured in each" in found[OWNERSHIP].basis


def test_without_a_price_the_electricity_stands_alone() -> None:
    found = ownership(TARIFF, "EUR", Figure(None, "nobody named one"), "", [500.0])
    assert found[ENERGY].value == 2500 and found[OWNERSHIP].value is None
    assert "nobody named one" in found[OWNERSHIP].basis


def test_two_currencies_are_not_added() -> None:
    found = ownership(TARIFF, "EUR", PRICE, "USD", [500.0])
    assert found[OWNERSHIP].value is None and "in USD, electricity in EUR" in found[OWNERSHIP].basis
