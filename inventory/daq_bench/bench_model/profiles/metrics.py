"""The metrics that requirements may bound, from inventory/metrics.yml. Raises ProfileError (file, line, field, remedy)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jmespath

from daq_bench.bench_model.base.direction import Better
from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.base.units import convert
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import YamlSource, check, parsed, text_of, without_lines

Nature = Literal["observed", "estimated"]


@dataclass(frozen=True)
class ResultMetric:
    """Describes where in a run bundle the values of one metric stand, one per repetition.

    `nature`: an `observed` value is a fact about its repetition (a count, an extreme, what read back); an `estimated` one
    would scatter if it were measured again, and is decided by an interval. `samples`: one time-ordered series per
    repetition, whose mean is the value. `interval`: [low, high] per repetition at 95 %, where the workload knows it better. `rounds`:
    how many rounds each value's interval was made of. `strata`: what each value is of; only values of the same are repetitions.
    `rule`: of a standard, which decides instead of an interval. `highest`: what no value exceeds, as 1 of a share.
    `better`: which values are; None in a bundle that is older than the field. `bounds`: the least and the most that may be asked for."""

    name: str
    description: str
    unit: str
    file: str
    path: str
    nature: Nature
    samples: str | None = None
    interval: str | None = None
    rounds: str | None = None
    strata: str | None = None
    rule: Literal["steady-window"] | None = None
    highest: float | None = None
    better: Better | None = None
    bounds: tuple[float, ...] | None = None


_KNOWN: dict[str, dict[str, ResultMetric]] = {}
MOST_KNOWN = 8


def load_metrics(file: Path) -> dict[str, ResultMetric]:
    """The result metrics that inventory/metrics.yml names. Every bundle carries its own; a text that is known is not parsed again."""
    text = text_of(file)
    if text not in _KNOWN:
        source = without_lines(file, text)
        try:
            found = _read(source)
        except ProfileError:
            if source.has_lines:
                raise
            found = _read(parsed(file, text))
        while len(_KNOWN) >= MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[text] = found
    return dict(_KNOWN[text])


def _read(source: YamlSource) -> dict[str, ResultMetric]:
    check(source, "metrics")
    metrics, bounds = {}, plain(source.data.get("bounds", {}))
    for name, entry in plain(source.data["results"]).items():
        try:
            for key in ("path", "samples", "interval", "rounds", "strata"):
                if key in entry:
                    jmespath.compile(entry[key])
            convert(1.0, entry["unit"], entry["unit"])
        except (ValueError, jmespath.exceptions.JMESPathError) as error:
            raise source.error(("results", name), str(error).replace("\n", " "), "Correct it") from None
        # A count is exact. Any other metric that states no nature gets the cautious one: it has to show its scatter.
        nature = "observed" if entry["unit"] == "count" else "estimated"
        within = entry.pop("bounds", bounds.get(entry["unit"]))
        metrics[name] = ResultMetric(name=name, bounds=within and tuple(within), **{"nature": nature, **entry})
    return metrics
