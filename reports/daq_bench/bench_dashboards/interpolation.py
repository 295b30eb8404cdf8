"""Fills in a query as Grafana does before it sends it: variables in the format `regex`, time range and interval.

It knows only the dashboards' forms: `${name:regex}`, `$timeFilter`, `$__interval`, `${__from}`; anything else with a dollar sign is
refused, since nobody could say what a Grafana would send."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from daq_bench.bench_model.base.errors import BenchError

SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")  # the characters that Grafana escapes; not a hyphen
VARIABLE = re.compile(r"\$\{(\w+):regex\}")
DATA_POINTS_MAX = 1000  # about a panel's width in pixels
# Grafana's own rounding of an interval (@grafana/data, rangeutil.roundInterval): below so many s, it is so many s.
ROUNDED_S = (
    (1.5, 1), (3.5, 2), (7.5, 5), (12.5, 10), (17.5, 15), (25, 20), (45, 30), (90, 60), (210, 120), (450, 300), (750, 600), (1050, 900),
    (1500, 1200), (2700, 1800), (5400, 3600), (9000, 7200), (16_200, 10_800), (32_400, 21_600), (86_400, 43_200), (604_800, 86_400),
    (1_814_400, 604_800), (3_628_800, 2_592_000),
)  # fmt: skip


class Every(Enum):
    """The choice "All" of a variable with the custom value `.*`, which Grafana inserts as it is."""

    VALUE = ".*"


Choice = str | tuple[str, ...] | Every


@dataclass(frozen=True)
class Range:
    """The dashboard's time range, ms since 1970 UTC."""

    begin_ms: int
    end_ms: int

    def interval(self, points: int = DATA_POINTS_MAX) -> str:
        """Returns the value of `$__interval` for a panel that takes so many points: whole seconds, 1 s at least."""
        asked_s = (self.end_ms - self.begin_ms) / points / 1000
        return f"{next((rounded for below, rounded in ROUNDED_S if asked_s < below), 31_536_000)}s"


def escaped(value: str) -> str:
    return SPECIAL.sub(lambda found: "\\" + found.group(), value)


def as_regex(choice: Choice) -> str:
    """One value, or several as alternatives."""
    if isinstance(choice, Every):
        return choice.value
    values = (choice,) if isinstance(choice, str) else choice
    texts = [escaped(value) for value in values]
    return texts[0] if len(texts) == 1 else "(" + "|".join(texts) + ")"


def interpolated(query: str, choices: Mapping[str, Choice], shown: Range) -> str:
    """The query that InfluxDB gets. Raises BenchError for a variable without a choice, or in another format."""

    def put(found: re.Match[str]) -> str:
        if found.group(1) not in choices:
            raise BenchError(f"{query}: nothing is chosen for the variable {found.group(1)}")
        return as_regex(choices[found.group(1)])

    query = query.replace("$timeFilter", f"time >= {shown.begin_ms}ms and time <= {shown.end_ms}ms")
    query = query.replace("${__from}", str(shown.begin_ms)).replace("$__interval", shown.interval())
    text = VARIABLE.sub(put, query)
    # A dollar sign that is left may only close a regular expression, or be escaped in it.
    if re.search(r"\$(?!/)", re.sub(r"\\.", "", text)):
        raise BenchError(f"{text}: a dollar sign is left that Grafana would take for a variable")
    return text
