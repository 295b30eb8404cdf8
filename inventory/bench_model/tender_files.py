"""What a buyer adds to the measurements: prices and weights, as YAML. Every complaint names file, line, field and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench_model.contenders import COST, DENSITY, ENDURANCE, POWER
from bench_model.profiles import plain
from bench_model.yaml_source import check, read_yaml

MARGIN_PERCENT = 2.0  # [P] values that differ by less mean the same to the buyer
OFFERED = (COST, POWER, DENSITY, ENDURANCE)  # criteria besides requirements


@dataclass(frozen=True)
class Price:
    """`contender`: of all of it as it was measured. `drive_model`: of each such drive. One of them is empty."""

    amount: float
    source: str
    contender: str = ""
    drive_model: str = ""


@dataclass(frozen=True)
class Prices:
    currency: str
    date: str
    prices: tuple[Price, ...]

    def of(self, contender: str, models: Sequence[str | None]) -> tuple[float | None, str]:
        """(amount, where it comes from) of a contender with drives of these models; (None, why) where it has none."""
        for one in self.prices:
            if one.contender == contender:
                return one.amount, f"whole configuration, {self.date}: {one.source}"
        by_model = {one.drive_model: one for one in self.prices if one.drive_model}
        known = [by_model[model] for model in models if model in by_model]
        if models and len(known) == len(models):
            sources = "; ".join(dict.fromkeys(one.source for one in known))
            return sum(one.amount for one in known), f"its {len(models)} drives, {self.date}: {sources}"
        return None, "the price file names neither it nor the model of each of its drives"


@dataclass(frozen=True)
class Weights:
    """`weights`: by requirement id or by cost, power_per_rate, density, endurance, in the file's order."""

    weights: dict[str, float] = field(default_factory=dict)
    margin_percent: float = MARGIN_PERCENT
    margins_percent: dict[str, float] = field(default_factory=dict)

    def margin(self, requirement: str) -> float:
        """Equivalence margin as a share."""
        return self.margins_percent.get(requirement, self.margin_percent) / 100


def load_prices(file: Path, contenders: Sequence[str]) -> Prices:
    """Raises ProfileError for a broken file, or a contender that is not compared."""
    source = read_yaml(file)
    check(source, "tender-prices")
    data = plain(source.data)
    for index, entry in enumerate(data["prices"]):
        if "contender" in entry and entry["contender"] not in contenders:
            raise source.error(
                ("prices", index, "contender"),
                f"{entry['contender']!r} is not compared here",
                f"Compared: {', '.join(contenders)}",
            )
    return Prices(data["currency"], str(data["date"]), tuple(Price(**entry) for entry in data["prices"]))


def load_weights(file: Path, requirements: Sequence[str]) -> Weights:
    """Raises ProfileError for a broken file, or a criterion that is neither a requirement nor one of `OFFERED`."""
    source = read_yaml(file)
    check(source, "tender-weights")
    data = plain(source.data)
    known = (*requirements, *OFFERED)
    for key in ("weights", "equivalence_percent_of"):
        for name in data.get(key, {}):
            if name not in (known if key == "weights" else requirements):
                raise source.error((key, name), f"{name!r} is no criterion here", f"Use one of {', '.join(known)}")
    if not any(data["weights"].values()):
        raise source.error(("weights",), "no weight is above zero", "Give one criterion a weight above zero")
    return Weights(
        {name: float(weight) for name, weight in data["weights"].items()},
        float(data.get("equivalence_percent", MARGIN_PERCENT)),
        {name: float(value) for name, value in data.get("equivalence_percent_of", {}).items()},
    )
