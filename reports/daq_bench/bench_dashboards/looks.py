"""The looks of values: units, thresholds, colours of single series, words for codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from daq_bench.bench_model.verdict.conclusion import REHEARSAL, REHEARSAL_FAILED

Json = dict[str, Any]


class Unit(StrEnum):
    """Grafana's ids. Sizes and rates are decimal (GB = 10^9 B), as everywhere in the bench."""

    BYTES = "decbytes"
    BYTES_PER_S = "Bps"
    CELSIUS = "celsius"
    KELVIN = "kelvin"
    FRACTION = "percentunit"
    PERCENT = "percent"
    RPM = "rotrpm"
    WATT = "watt"
    SECONDS = "s"
    DURATION = "dtdurations"
    MINUTES = "m"
    HOURS = "h"
    HERTZ = "hertz"
    PER_S = "cps"
    COUNT = "none"
    TEXT = "string"
    AGE = "dateTimeFromNow"  # of a moment in ms: "3 minutes ago"


class Colour(StrEnum):
    """Names of Grafana's palette, which has a shade of each for dark and for light screens."""

    GOOD = "green"
    WATCH = "yellow"
    ALARM = "orange"
    BAD = "red"
    CALM = "blue"
    OFFERED = "light-blue"
    MUTED = "#808080"
    ODD = "purple"
    PLAIN = "text"
    CLEAR = "transparent"


LOWEST = -1e15  # below every number that is shown


@dataclass(frozen=True)
class Thresholds:
    """`base` below the first step; each step from its value on. `missing`: of a value that is not there.

    Grafana gives a missing value the colour of its first step. No number therefore has that step."""

    base: Colour
    steps: tuple[tuple[float, Colour], ...] = ()
    missing: Colour = Colour.MUTED

    def json(self, of_numbers: bool = True) -> Json:
        """As Grafana's field option. `of_numbers` False: texts, and limits drawn as lines, begin with `base`."""
        first = [(None, self.missing), (LOWEST, self.base)] if of_numbers else [(None, self.base)]
        rows: list[Json] = [{"color": colour, "value": start} for start, colour in (*first, *self.steps)]
        return {"mode": "absolute", "steps": rows}


def without_green(of: Thresholds, good: Colour = Colour.CLEAR) -> Thresholds:
    """Returns thresholds for values whose age the place does not bound: nothing old is green, and what is bad keeps its colour."""
    steps = tuple((start, good if colour is Colour.GOOD else colour) for start, colour in of.steps)
    return replace(of, base=good if of.base is Colour.GOOD else of.base, steps=steps)


# A cell without a value has no colour: a drive of another kind is no warning.
EMPTY: Json = {
    "type": "special",
    "options": {"match": "null", "result": {"text": "-", "color": "transparent", "index": 0}},
}
PLAIN = Thresholds(Colour.PLAIN)
NONE_ALLOWED = Thresholds(Colour.GOOD, ((1, Colour.BAD),))
NEAR_WARNING_K = 5
MARGIN_TO_WARNING = Thresholds(Colour.BAD, ((0, Colour.ALARM), (NEAR_WARNING_K, Colour.WATCH), (10, Colour.GOOD)))
NONE_EXPECTED = Thresholds(Colour.GOOD, ((1, Colour.ALARM),))


@dataclass(frozen=True)
class Word:
    """A value that is shown as a word of its own, in a colour."""

    value: str
    text: str
    colour: Colour


OUTCOMES = (
    Word("PASS", "PASS", Colour.GOOD),
    Word("FAIL", "FAIL", Colour.BAD),
    Word("ERROR", "ERROR", Colour.ODD),
    Word("INADMISSIBLE", "INADMISSIBLE", Colour.WATCH),
    Word(REHEARSAL, REHEARSAL, Colour.WATCH),
    Word(REHEARSAL_FAILED, REHEARSAL_FAILED, Colour.BAD),
)
# Words of the history that are no outcome: of a run that has begun, of one that has ended and is being judged, and of a candidate that was
# taken out of service.
BEGUN = Word("BEGUN", "not ended", Colour.CALM)
JUDGING = Word("JUDGING", "being judged", Colour.CALM)
RETIRED = Word("RETIRED", "retired", Colour.MUTED)
DECISIONS = (
    Word("met", "met", Colour.GOOD),
    Word("missed", "missed", Colour.BAD),
    Word("undecided", "undecided", Colour.WATCH),
)


def recorded(words: tuple[Word, ...], good: Colour = Colour.CLEAR) -> tuple[Word, ...]:
    """Returns words for a record of the past: as `without_green`."""
    return tuple(replace(one, colour=good) if one.colour is Colour.GOOD else one for one in words)


def mappings(words: tuple[Word, ...]) -> list[Json]:
    if not words:
        return []
    options = {word.value: {"color": word.colour, "index": i, "text": word.text} for i, word in enumerate(words)}
    return [{"type": "value", "options": options}]


@dataclass(frozen=True)
class DataLink:
    """A link on a value. `${__data.fields.NAME}` is another column of its row."""

    title: str
    url: str
    new_tab: bool = True

    def json(self) -> Json:
        return {"title": self.title, "url": self.url, "targetBlank": self.new_tab}


@dataclass(frozen=True)
class Override:
    """Settings of the series or columns whose name is `name`, or matches it where it is written /so/."""

    name: str
    unit: Unit | None = None
    colour: Colour | None = None
    dashed: bool = False
    hidden: bool = False
    unlisted: bool = False  # drawn, and not in the legend
    muted: bool = False  # a column whose texts are grey
    right_axis: bool = False
    width: int | None = None
    thresholds: Thresholds | None = None
    words: tuple[Word, ...] = ()
    links: tuple[DataLink, ...] = ()
    label: str = ""
    no_value: str = ""
    long: bool = False  # a text that its cell may cut off: the whole opens by a click

    def json(self) -> Json:
        properties: list[Json] = []

        def put(identifier: str, value: object) -> None:
            properties.append({"id": identifier, "value": value})

        if self.label:
            put("displayName", self.label)
        if self.unit:
            put("unit", self.unit)
        if self.colour:
            put("color", {"mode": "fixed", "fixedColor": self.colour})
        if self.dashed:
            put("custom.lineStyle", {"fill": "dash", "dash": [10, 10]})
            put("custom.fillOpacity", 0)
        if self.right_axis:
            put("custom.axisPlacement", "right")
        if self.width:
            put("custom.width", self.width)
        if self.hidden:
            put("custom.hidden", True)
        if self.unlisted:
            put("custom.hideFrom", {"viz": False, "legend": True, "tooltip": False})
        if self.muted:
            put("color", {"mode": "fixed", "fixedColor": Colour.MUTED})
            put("custom.cellOptions", {"type": "color-text"})
        if self.thresholds:
            put("thresholds", self.thresholds.json())
            put("mappings", [EMPTY])
            put("custom.cellOptions", {"type": "color-background", "mode": "basic"})
        if self.words:
            put("mappings", mappings(self.words))
            put("custom.cellOptions", {"type": "color-background", "mode": "basic"})
        if self.no_value:
            put("noValue", self.no_value)
        if self.long:
            put("custom.inspect", True)
        if self.links:
            put("links", [link.json() for link in self.links])
        pattern = self.name.startswith("/")
        return {
            "matcher": {"id": "byRegexp" if pattern else "byName", "options": self.name},
            "properties": properties,
        }
