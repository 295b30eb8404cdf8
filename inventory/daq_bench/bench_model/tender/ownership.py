"""Total cost of ownership: the price, and the electricity for the hours that the buyer means to use it.

Promise: it is reckoned only where everything it rests on is known and in one currency; its basis says from what, and it never makes a
contender's power up: what was not measured has no cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.tender.buyer_files import Energy
from daq_bench.bench_model.tender.contenders import Figure

ENERGY, OWNERSHIP = "energy_cost", "ownership"


def ownership(
    energy: Energy, currency: str, price: Figure, price_currency: str, runs_w: Sequence[float | None]
) -> dict[str, Figure]:
    """`runs_w`: mean power of the whole server under the record's load, in W, one for each run; `currency`: that of the tariff."""
    electricity = _electricity(energy, currency, runs_w)
    if electricity.value is None or price.value is None:
        missing = electricity.basis if electricity.value is None else f"no price: {price.basis}"
        return {ENERGY: electricity, OWNERSHIP: Figure(None, missing)}
    if price_currency != currency:
        why = f"the price is in {price_currency or 'no currency'}, electricity in {currency}"
        return {ENERGY: electricity, OWNERSHIP: Figure(None, why)}
    basis = f"price ({price.basis}) and electricity ({electricity.basis})"
    return {ENERGY: electricity, OWNERSHIP: Figure(price.value + electricity.value, basis)}


def _electricity(energy: Energy, currency: str, runs_w: Sequence[float | None]) -> Figure:
    known = [watts for watts in runs_w if watts is not None and math.isfinite(watts) and watts > 0]
    if not known or len(known) < len(runs_w):
        return Figure(None, "the server's power was not measured in each of its runs")
    watts = math.fsum(known) / len(known)
    runs = f"{len(known)} run{'s' if len(known) > 1 else ''}"
    basis = (
        f"{in_digits(watts)} W in the records of {runs} (n = {len(known)}), for {in_digits(energy.hours, 15)} h "
        f"at {in_digits(energy.price_per_kwh, 15)} {currency}/kWh: {energy.source}"
    )
    return Figure(watts / 1000 * energy.hours * energy.price_per_kwh, basis)
