"""The part of docs/self-qualification-market.md, and of its scenarios' pages, that is measured: which of the good servers that are sold
pass, by capacity, kind and drive; what else ended how. It holds no date."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from daq_bench.bench_model.lot.sampling import passing_share, passing_share_at_least
from daq_bench.simulation.campaign import Row, fault_of
from daq_bench.simulation.document import SEEDS_SHOWN, confusion, errors, share, table
from daq_bench.simulation.physics.drawing import MARKET
from daq_bench.simulation.physics.market import CATALOGUE, MEDIA, Model

TB = 1e12
CAPACITIES = ((0, 2), (2, 8), (8, 32), (32, 250))  # TB of the target
DEMANDED, DEMANDED_LEAST = 95, 93  # % of good servers; lower end of the interval


def text_of(rows: Sequence[Row], first: int, canary: Row, scenario: str = MARKET) -> str:
    """Returns the text between the marks of the market's page in one scenario; the page of snb-100s has the catalogue, too."""
    parts = [
        _counted(rows, first, canary, fault_of(scenario)[1]),
        f"## Good servers that passed\n\nDemanded are {DEMANDED} % of each class, with the interval's lower end at "
        f"{DEMANDED_LEAST} % or above: "
        '52 good servers\nof a class, all of which pass, show that. "shown" says where these runs do.\n\n',
        _classes(
            "capacity of the target, TB", rows, [(f"{low} to {high}", _holds(low, high)) for low, high in CAPACITIES]
        ),
        "\n" + _classes("target", rows, _drawn(KINDS, _is_kind, rows)),
        "\n" + _classes("drives", rows, _drawn(MEDIA, _is_of, rows)),
        "\n## Good servers that did not pass\n\n" + _refused(rows),
        "\n## Outcomes against the truth\n\n" + confusion(rows),
        "\n## Runs that erred\n\n" + errors(rows),
        "\n## The catalogue\n\n" + _catalogue() if scenario == MARKET else "",
    ]
    return "".join(parts)


KINDS = ("single, file system", "single, raw drive", "raid0", "raid10", "raid5", "raid6")


def _drawn(
    names: Sequence[str], test: Callable[[str], Callable[[Row], bool]], rows: Sequence[Row]
) -> list[tuple[str, Callable[[Row], bool]]]:
    """The classes that the scenario has at all."""
    return [(name, test(name)) for name in names if any(map(test(name), rows))]


def kind_of(row: Row) -> str:
    if row.array != "single":
        return row.array
    return KINDS[row.target_kind == "raw-device"]


def _is_kind(name: str) -> Callable[[Row], bool]:
    return lambda row: kind_of(row) == name


def _is_of(medium: str) -> Callable[[Row], bool]:
    return lambda row: row.medium == medium


def _holds(low: float, high: float) -> Callable[[Row], bool]:
    return lambda row: low * TB <= row.capacity_bytes < high * TB


def _counted(rows: Sequence[Row], first: int, canary: Row, fault: str) -> str:
    good = [row for row in rows if row.is_good]
    bad = [row for row in rows if not row.may_pass]
    caused = [row for row in bad if row.causes]
    lines = [
        ("good server passes", good, lambda row: row.outcome == "PASS"),
        ("false alarm (a good server fails)", good, lambda row: row.false_alarm),
        ("wrong PASS (the run must not pass and does)", bad, lambda row: row.wrong_pass),
        ("right outcome", rows, lambda row: row.is_right),
        ("cause named, of the runs that have one", caused, lambda row: row.named),
        ("counts of bytes, superchunks or points differ from the model's", rows, lambda row: row.invented),
    ]
    wrong = sum(row.wrong_pass for row in bad)
    upper = 1 - passing_share_at_least(len(bad) - wrong, len(bad)) if bad else 1.0
    cpu = sum(row.cpu_s for row in rows) / len(rows)
    return (
        f"## How often the bench erred\n\n{len(rows)} runs, seeds {first} to {first + len(rows) - 1}; {cpu:.1f} s of CPU for each.\n\n"
        + table(("what", "count", "of", "share", "95 % interval"), (share(*line) for line in lines))
        + f"\nIntervals are Clopper and Pearson's. **Wrong PASS: {wrong} of {len(bad)} runs that must not pass; "
        f"with 95 % confidence\nat most {100 * upper:.2g} % of such runs.** The canary ({fault}) was found: {canary.outcome}.\n\n"
    )


def _classes(head: str, rows: Sequence[Row], classes: Iterable[tuple[str, Callable[[Row], bool]]]) -> str:
    body = []
    for name, belongs in classes:
        own = [row for row in rows if belongs(row)]
        good = [row for row in own if row.is_good]
        passed = sum(row.outcome == "PASS" for row in good)
        low, high = passing_share(passed, len(good)) if good else (0.0, 1.0)
        told = f"{100 * passed / len(good):.1f} %" if good else ""
        shown = "yes" if good and 100 * low >= DEMANDED_LEAST else "no"
        wrong = sum(row.wrong_pass for row in own)
        interval = f"{100 * low:.1f} to {100 * high:.1f} %"
        body.append((name, str(len(own)), str(len(good)), str(passed), told, interval, shown, str(wrong)))
    heads = (head, "runs", "good", "passed", "share", "95 % interval", "shown", "wrong PASS")
    return table(heads, body)


def _refused(rows: Sequence[Row]) -> str:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.refused_good:
            found[f"{row.outcome}: {_kind_of_reason(row.reason)}"].append(row)
    if not found:
        return "None.\n"
    return "".join(_listed(text, found[text]) for text in sorted(found, key=lambda text: -len(found[text])))


def _listed(text: str, rows: Sequence[Row]) -> str:
    seeds = ", ".join(str(row.seed) for row in rows[:SEEDS_SHOWN])
    more = f" and {len(rows) - SEEDS_SHOWN} more" if len(rows) > SEEDS_SHOWN else ""
    media = ", ".join(sorted({row.medium for row in rows}))
    return f"- {len(rows)} x {text}\n  ({media}; seeds {seeds}{more})\n"


def _kind_of_reason(reason: str) -> str:
    """The sentence without this run's own figures and names, short enough for a line."""
    text = re.sub(
        r"\b(nvme\d+n\d+|sd[a-z]+|md\d+)(, (nvme\d+n\d+|sd[a-z]+))*", "D", re.sub(r"SIM[0-9A-F]{8}", "S", reason)
    )
    text = re.sub(r"\d[\d.]*", "N", text)
    return text if len(text) <= 110 else f"{text[:107]}..."


def _catalogue() -> str:
    heads = ("model", "cells", "TB", "PCIe", "GB/s", "W", "source")
    return (
        'Rates are those of sequential writing by the source; "~": none is known, and the rate is drawn from\n75 to 120 % of it '
        "instead of 95 to 103 %. All other drawn values, and their sources, stand in\n"
        "`robot-suites/daq_bench/simulation/physics/market.py`. The demand is 9.243 GB/s.\n\n"
        + table(heads, map(_line, CATALOGUE))
    )


def _line(one: Model) -> tuple[str, ...]:
    rates = " ".join(f"{rate:g}" for rate in one.gbs) + ("" if one.sourced else " ~")
    if one.cached:
        rates = f"{one.cached[0]:g} in {one.cached[1]:.0%}, then {rates}, folding {one.cached[2]:g}"
    bus = f"{one.gen}x4" if one.gen else "SAS-3"
    return (
        one.name,
        one.medium,
        " ".join(f"{tb:g}" for tb in one.tb),
        bus,
        rates,
        f"{one.watts[0]:g}/{one.watts[1]:g}",
        one.source,
    )
