"""The requirement table as finished text: bound, measured value, margin and why.

Promise: every number went through `units`; facts that all rows share are said once, below the table or in its caption.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.verdict.conclusion import conclude, state, weight
from daq_bench.bench_model.verdict.decision import RANGE_OF_ALL
from daq_bench.bench_model.verdict.sentences import brief
from daq_bench.bench_report.base.marks import see_section, see_table
from daq_bench.bench_report.base.units import (
    NONE,
    SIDES,
    THIN,
    TIMES,
    count,
    factor_text,
    percent,
    quantity,
    quantity_beside,
    significant,
)
from daq_bench.bench_report.document.table import LINE, Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle

SELF_EVIDENT = ("Met", "Missed")  # the outcome beside it says as much
EXACT = (
    "observation: ",
    ", exact; it bounds no other repetition",
)  # words of older benches' verdicts, and of this one's
THIS_RUN = "this run only"
OF_REPETITIONS = re.compile(
    r"\bof (\d+) repetitions\b"
)  # in the method's name; a row's n counts those of all its strata
MANY = 59  # repetitions without a bad one that bound the share of bad ones at 5 %, at 95 %
SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "MiB": 2.0**20, "GiB": 2.0**30}
MOST_ON_FIRST_PAGE = 12
CONFIDENCE = 4  # its column in the first page's table


def requirement_table(bundle: Bundle) -> Table | None:
    """Every requirement with bound, measured value, margin and why; each cell's first line is the value, the others explain it."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    if not judged:
        return None
    reason, number = shared_reason(bundle), shared_n(bundle)
    return Table(
        heads=("ID", "Requirement and evidence", "Bound", "Measured", "Margin", "Result"), kinds="ttnnno", name="requirements",
        rows=tuple(_row(one, bundle, reason, number) for one in judged), caption=_caption(bundle, number),
    )  # fmt: skip


def summary_table(bundle: Bundle) -> Table | None:
    """Returns the first page's table: one row for each requirement; from many, those that come first in the order of findings."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    if not judged:
        return None
    shown = judged if len(judged) <= MOST_ON_FIRST_PAGE else sorted(judged, key=weight)[:MOST_ON_FIRST_PAGE]
    rows: tuple[tuple[str, ...], ...] = tuple(
        (
            one.id, brief(one) + (" (advisory)" if one.severity == "advisory" else ""), bound_words(one),
            NONE if one.measured is None else measured_words(one), _confidence(one), _margin_text(one).partition(LINE)[0],
            state(one),
        )
        for one in shown
    )  # fmt: skip
    whole = see_table("requirements")
    caption = f"Requirements in short. {_counted(judged)} In full: {whole}. A positive margin lies inside the bound."
    if len(shown) < len(judged):
        which = (
            f"Shown are the {len(shown)} of {len(judged)} that weigh most, by the rule of {see_section('findings')}."
        )
        caption = caption.replace("in short. ", f"in short. {which} ", 1)
    number = shared_n(bundle)
    if number == 1:
        caption += " Each value is of this run only (n = 1)."
    elif number is not None:
        caption += f" Each was measured n = {number} times."
    if bundle.verdict and bundle.verdict.outcome not in ("PASS", "FAIL"):
        caption += (
            f" The result of a row is what its numbers say; the run's own outcome is {conclude(bundle.verdict).word}."
        )
    heads: tuple[str, ...] = ("ID", "Requirement", "Bound", "Measured", "Confidence", "Margin", "Result")
    kinds = "ttnnnno"
    if number == 1 and not any(one.confidence_interval for one in shown):  # the caption has said it
        heads, kinds, rows = _without(heads, CONFIDENCE), "ttnnno", tuple(_without(row, CONFIDENCE) for row in rows)
    return Table(heads, kinds, rows, caption, "summary")


def _without(row: tuple[str, ...], column: int) -> tuple[str, ...]:
    return row[:column] + row[column + 1 :]


def _counted(judged: Sequence[Judgement]) -> str:
    """Returns `Met 7, missed 1, undecided 0, not measured 1.`: the results by the numbers alone, whether or not the evidence counts."""
    found = Counter(state(one) for one in judged)
    text = ", ".join(f"{word} {found[word]}" for word in ("met", "missed", "undecided", "not measured"))
    return text[0].upper() + text[1:] + "."


def _confidence(judged: Judgement) -> str:
    """Returns the interval, or in a word the reason why there is none; with n where it is not the same for all."""
    if judged.measured is None:
        return NONE
    if judged.confidence_interval:
        said = "" if judged.confidence else f"{_without_level(judged)}: "
        return said + _range(judged.confidence_interval, judged.unit)
    return _method(judged) if judged.interval_method else "no CI"


def _caption(bundle: Bundle, number: int | None) -> str:
    run, judged = bundle.run, bundle.verdict.requirements if bundle.verdict else ()
    times = (
        ""
        if number is None
        else ", each measured in this run only (n = 1)"
        if number == 1
        else f", each measured n = {number} times"
    )
    many = f"{len(judged)} requirement{'s' if len(judged) != 1 else ''}"
    return f"Requirements in full. {run.requirement.title or run.requirement.id}: {many}{times}. A positive margin lies inside the bound."


def shared_n(bundle: Bundle) -> int | None:
    """The number of values behind each measured row, where it is the same for all: said once, in the caption."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    numbers = {row.n for row in judged if row.measured is not None}
    return numbers.pop() if len(numbers) == 1 else None


def shared_reason(bundle: Bundle) -> str:
    """The reason that most rows have in common: it is said once, below the table."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    counts = Counter(row.reason for row in judged if row.reason and row.reason not in SELF_EVIDENT)
    reason, number = counts.most_common(1)[0] if counts else ("", 0)
    return reason if number > 1 else ""


def notes(bundle: Bundle) -> tuple[str, ...]:
    """Returns the meaning of the short words that rows use."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    said = []
    if any(row.confidence_interval and row.confidence for row in judged):
        said.append(
            "CI: confidence interval, two-sided, of the judged value; met or missed only when the whole of it lies on one "
            "side of the bound (and inside by the guard band, where there is one)."
        )
    ranged = [row for row in judged if _is_ranged(row)]
    if ranged:
        said.append(
            "Range of all samples: no interval decided, and every sample of every repetition lies on one side of the bound. No "
            "confidence level is claimed for it."
        )
    numbers = [int(found[1]) for row in judged if (found := OF_REPETITIONS.search(row.interval_method or ""))]
    if numbers and min(numbers) < MANY:
        said.append(_what_repetitions_hold(min(numbers)))
    if any(row.confidence_interval and not row.confidence and row not in ranged for row in judged):
        said.append(
            "This run only: the interval, or the range, knows nothing of how runs scatter; no confidence level is claimed for it."
        )
    if any(_is_exact(row.interval_method or "") for row in judged):
        said.append("Exact for this run, without an interval; the next run may give another value.")
    if any(row.decision == "undecided" for row in judged):
        said.append("Undecided: the numbers lie too near the bound, or are too few, for a verdict either way.")
    return tuple(said)


def _row(judged: Judgement, bundle: Bundle, shared: str, number: int | None) -> tuple[str, ...]:
    evidence = ", ".join(name + ("" if _held(name, bundle) else " (not in the bundle)") for name in judged.evidence)
    guard = f"guard band {quantity(judged.guard_band, judged.unit, trim=True)}" if judged.guard_band else ""
    cells = (
        (judged.id,),
        (
            judged.text + (" (advisory)" if judged.severity == "advisory" else ""),
            "; ".join(part for part in (evidence, judged.source or "") if part),
        ),
        (bound_words(judged), _derivation(judged, bundle.verdict.scale if bundle.verdict else None)),
        (measured_words(judged), *_spread(judged, number)),
        (_margin_text(judged), guard),
        (state(judged), _reason(judged, shared)),
    )
    return tuple(LINE.join(part for part in cell if part) for cell in cells)


def bound_words(judged: Judgement) -> str:
    """`at least 8.5 GiB/s`."""
    return f"{SIDES[judged.comparison]} {quantity(judged.scaled_bound, judged.unit, trim=True)}"


def measured_words(judged: Judgement) -> str:
    """`1.349 GiB/s`, with as many digits as it takes to tell it from its bound."""
    if judged.measured is None:
        return "not measured"
    return quantity_beside(judged.measured, judged.scaled_bound, judged.unit)


def beside_bound(judged: Judgement) -> str:
    """`2.444 GB/s, 2.6 \u00d7 the 0.9243 GB/s asked`, `39.5 MB of at most 1074 MB`, `31 \u00b0C, asked at least 1 \u00b0C`."""
    measured, bound = judged.measured, judged.scaled_bound
    if measured is None or bound <= 0 or measured <= 0 or judged.comparison == "equal":
        return f"measured {measured_words(judged)}, asked {bound_words(judged)}"
    if judged.comparison == "at_least" and judged.unit.endswith("B/s"):
        times = significant(
            measured / bound, 2 if measured >= 1.05 * bound or measured < 0.95 * bound else 4, trim=True
        )
        return f"{measured_words(judged)}, {times}{THIN}{TIMES} the {quantity(bound, judged.unit, trim=True)} asked"
    if judged.comparison == "at_most" and judged.unit in SIZES:
        factor = SIZES[judged.unit]
        prefix, unit = next(
            one
            for one in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
            if measured * factor >= one[0] or one[0] == 1
        )
        low, high = (quantity(value * factor / prefix, unit, trim=value == bound) for value in (measured, bound))
        return f"{low} of at most {high}"
    if judged.comparison == "at_most":
        return f"{measured_words(judged)} of at most {quantity(bound, judged.unit, trim=True)}"
    return f"measured {measured_words(judged)}, asked {bound_words(judged)}"


def _held(name: str, bundle: Bundle) -> bool:
    return name in bundle.files or any(file.startswith(name.rstrip("/") + "/") for file in bundle.files)


def _derivation(judged: Judgement, scale: float | None) -> str:
    """Says how the bound of this run follows from the requirement's, where the two differ."""
    if judged.scaled_bound == judged.bound:
        return ""
    whole = quantity(judged.bound, judged.unit, trim=True)
    if scale is None:
        return f"{whole} at full scale"
    return f"{whole} {TIMES} {factor_text(scale)} = {quantity(judged.scaled_bound, judged.unit, trim=True)}"


def _reason(judged: Judgement, shared: str) -> str:
    """Returns the reason, unless the row or the note below the table says it."""
    if not judged.reason or judged.reason in (shared, *SELF_EVIDENT):
        return ""
    return judged.reason.removeprefix("Undecided: ") if judged.decision == "undecided" else judged.reason


def _spread(judged: Judgement, shared: int | None) -> tuple[str, ...]:
    """Returns lines below the measured value: its interval with the method, the scatter of the values, and their number."""
    parts = []
    if judged.confidence_interval:
        level = (
            f"{significant(100 * judged.confidence, 4, trim=True)}{THIN}% CI"
            if judged.confidence
            else _method(judged).partition(", no ")[0]
            if _is_ranged(judged)
            else _without_level(judged)
        )
        parts.append(f"{level} {_range(judged.confidence_interval, judged.unit)}")
    if judged.interval_method and not _is_ranged(judged):
        parts.append(_method(judged))
    found = judged.spread
    if found and found.count > 1 and found.min < found.max:
        parts.append(f"{found.of} {_range((found.min, found.max), judged.unit)}")
        if found.sd is not None:
            parts.append(f"sd {quantity(found.sd, judged.unit)}")
    if (
        judged.measured is not None
        and judged.n
        and (judged.n != shared or judged.n > 1)
        and not any(THIS_RUN in part for part in parts)
    ):
        statistic = f"{judged.statistic} of " if judged.statistic and judged.n > 1 else ""
        parts.append(f"{statistic}n = {count(judged.n)}")
    return tuple(parts)


def _range(ends: tuple[float, float], unit: str) -> str:
    """`1.803 to 2.116 GB/s`: the unit once, where both ends have the same."""
    low, high = (quantity(value, unit) for value in ends)
    number, stroke, name = low.rpartition(THIN)
    return f"{number if stroke and high.endswith(THIN + name) else low} to {high}"


def _is_ranged(judged: Judgement) -> bool:
    return bool(judged.confidence_interval) and (judged.interval_method or "").startswith(RANGE_OF_ALL)


def _without_level(judged: Judgement) -> str:
    """How far an interval without a confidence level speaks."""
    return f"range of all samples (n = {count(judged.n)})" if _is_ranged(judged) else this_run(judged)


def _what_repetitions_hold(number: int) -> str:
    """Says what so many good repetitions leave open: the share of bad ones that they would not show."""
    unseen = 1 - 0.05 ** (1 / number)
    return (
        f"n = {number} repetitions bound their median. Where 5 % of a candidate's repetitions are bad, none is among {number} with a "
        f"chance of {100 * 0.95**number:.0f} %: {number} good ones show, at 95 %, only that fewer than {100 * unseen:.0f} % are bad."
    )


def this_run(judged: Judgement) -> str:
    """`this run only (n = 1)`: how far the value speaks."""
    return f"{THIS_RUN} (n = {count(judged.n)})" if judged.n else THIS_RUN


def _method(judged: Judgement) -> str:
    """The verdict's name for the method, in the few words that a table has room for; verdict.json has all of them."""
    text = judged.interval_method or ""
    if _is_exact(text):
        return this_run(judged)
    if text.startswith("none: "):
        return "no CI"
    short = text.partition(", block ")[0].partition(", joined ")[0]
    return short.partition("; ")[0]


def _is_exact(text: str) -> bool:
    return text.startswith(EXACT[0]) or EXACT[1] in text


def _margin_text(judged: Judgement) -> str:
    if judged.margin is None:
        return "\u2013"
    sign = "+" if judged.margin > 0 else ""
    text = sign + quantity(judged.margin, judged.unit)
    if judged.margin_percent is not None and judged.margin:
        text += f"{LINE}{sign}{percent(judged.margin_percent)}"
    return text
