"""The prices and weights that a buyer adds to the measurements, as YAML. Every complaint names file, line, field and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.units import of_temperature
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import Key, YamlSource, check, finite, read_yaml
from daq_bench.bench_model.tender.contenders import COST, DENSITY, ENDURANCE, POWER, Question

MARGIN_PERCENT = 2.0  # [P] values that differ by less mean the same to the buyer
OFFERED = (COST, POWER, DENSITY, ENDURANCE)  # criteria besides requirements


@dataclass(frozen=True)
class Price:
    """`contender`: of all of it as measured. `drive_model`: of each such drive. One of them is empty."""

    amount: float
    source: str
    contender: str = ""
    drive_model: str = ""


@dataclass(frozen=True)
class Energy:
    """Electricity while in use: `hours` under the record's load, over all the time that the buyer reckons with."""

    price_per_kwh: float
    hours: float
    source: str


@dataclass(frozen=True)
class Prices:
    currency: str
    date: str
    prices: tuple[Price, ...]
    energy: Energy | None = None

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

    def margin(self, criterion: str) -> float:
        """Equivalence margin as a share."""
        return self.margins_percent.get(criterion, self.margin_percent) / 100


def load_prices(file: Path, contenders: Sequence[str]) -> Prices:
    """Raises ProfileError for a broken file, or a contender that is not compared."""
    source = _checked(file, "tender-prices")
    data = plain(source.data)
    try:
        date.fromisoformat(data["date"])
    except ValueError as error:
        raise source.error(("date",), f"{data['date']!r} is no day ({error})", "Write it as 2026-11-30") from None
    named: set[tuple[str, str]] = set()
    for index, entry in enumerate(data["prices"]):
        key = "contender" if "contender" in entry else "drive_model"
        if (key, entry[key]) in named:
            raise source.error(("prices", index, key), f"{entry[key]!r} has a price already", "Give each one price")
        named.add((key, entry[key]))
        if "contender" in entry and entry["contender"] not in contenders:
            raise source.error(
                ("prices", index, "contender"),
                f"{entry['contender']!r} is not compared here",
                f"Compared: {', '.join(contenders)}",
            )
    energy = Energy(**data["energy"]) if "energy" in data else None
    return Prices(data["currency"], data["date"], tuple(Price(**entry) for entry in data["prices"]), energy)


def load_weights(file: Path, questions: Sequence[Question]) -> Weights:
    """Raises ProfileError for a broken file, or a criterion that is neither one of `OFFERED` nor a requirement that can be scored."""
    source = _checked(file, "tender-weights")
    data = plain(source.data)
    by_id = {one.id: one for one in questions}
    scored = [one.id for one in questions if not _why_unscored(one)]
    for key in ("weights", "equivalence_percent_of"):
        known = (*scored, *OFFERED) if key == "weights" else tuple(scored)
        for name in data.get(key, {}):
            if name in by_id and (why := _why_unscored(by_id[name])):
                remedy = f"Remove it: its severity says what a miss costs. Use one of {', '.join(known)}"
                raise source.error((key, name), f"{name!r} {why}", remedy)
            if name not in known:
                raise source.error((key, name), f"{name!r} is no criterion here", f"Use one of {', '.join(known)}")
    if not any(data["weights"].values()):
        raise source.error(("weights",), "no weight is above zero", "Give one criterion a weight above zero")
    return Weights(
        {name: float(weight) for name, weight in data["weights"].items()},
        float(data.get("equivalence_percent", MARGIN_PERCENT)),
        {name: float(value) for name, value in data.get("equivalence_percent_of", {}).items()},
    )


def _why_unscored(question: Question) -> str:
    if not question.may_be_scored:
        return f"asks for exactly {question.bound} {question.unit}: it is met or missed and cannot be scored"
    return "is in degrees, of which no ratio can be taken" if of_temperature(question.unit) else ""


def _checked(file: Path, schema: str) -> YamlSource:
    """The file by its schema, which not-a-number slips past."""
    source = read_yaml(file)
    for path, value in _numbers(source.data, ()):
        if not finite(value):
            raise source.error(path, f"{value} is no number that can be reckoned with", "Write a finite number")
    check(source, schema)
    return source


def _numbers(node: Any, path: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], float]]:
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _numbers(child, (*path, str(key)))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _numbers(child, (*path, index))
    elif isinstance(node, int | float):
        yield path, node
