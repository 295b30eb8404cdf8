"""The common parts of several dashboards: the usual conditions, annotations, links and variables."""

from __future__ import annotations

from daq_bench.bench_dashboards.furniture import AS_ANSWERED, NEWEST_FIRST, Annotation, Link, TagValues
from daq_bench.bench_dashboards.influxql import (
    HISTORY,
    Condition,
    Expression,
    Query,
    chosen,
    differs,
    equals,
    has_text,
    last,
    one_of,
    over_time,
    value,
)
from daq_bench.bench_dashboards.looks import DECISIONS, OUTCOMES, Colour, DataLink, Override, Unit, recorded
from daq_bench.bench_dashboards.panels import Target

LIVE, DRIVES, FLEET, COMPARE = "daq-bench-live", "daq-bench-drives", "daq-bench-fleet", "daq-bench-compare"
DRIVE_HISTORY = "daq-bench-drive-history"
REPORT_URL = "${report_base:raw}/${__data.fields.run}/report.html"
EPOCH_BEGIN, EPOCH_END = "1999-12-31T23:59:50.000Z", "2000-01-01T00:02:00.000Z"

BAR_LASTS_S = 36 * 3600  # a night that was missed ends the bar of the one before, and what is older is green nowhere
BAR_LASTS = f"{BAR_LASTS_S // 3600} h"
LATELY = f"{BAR_LASTS_S // 3600}h"  # as a range of Grafana's
NO_VERDICT = f"no verdict for {BAR_LASTS}"

HERE: tuple[Condition, ...] = (chosen("host"), chosen("run"))
JUDGED_RUN = has_text("outcome")  # the point of a run's begin has none
OWN_AGENT = differs("instance", "bmc")  # the other one, on the control node, goes on when the candidate is dead
DRIVE: tuple[Condition, ...] = (*HERE, chosen("device"))
TOTAL: tuple[Condition, ...] = (*HERE, equals("core", "total"))

CANDIDATE = TagValues(
    "host",
    "Candidate",
    "The server under test; first the one that answered last",
    "host",
    "telemetry_agent",
    field="staleness_s",
    newest_first=True,
    sort=AS_ANSWERED,
)
RUN = TagValues(
    "run",
    "Run",
    "Newest first. All: whatever runs on the candidate, also the run that begins tonight",
    "run",
    "telemetry_agent",
    where=(("host", "host"),),
    all_of_them=True,
    sort=NEWEST_FIRST,
)
DEVICE = TagValues(
    "device",
    "Drive",
    "Drives and arrays by the kernel's name",
    "device",
    "block_device",
    where=(("host", "host"), ("run", "run")),
    several=True,
    all_of_them=True,
)

# A limit that is above every temperature would stand before them in a legend that begins with the highest.
LIMITS = (
    Override("/ warning$/", colour=Colour.WATCH, dashed=True, unlisted=True),
    Override("/ critical$/", colour=Colour.BAD, dashed=True, unlisted=True),
)
# A table of past runs: what was good then has no colour.
OUTCOME_COLUMN = Override("Outcome", words=recorded(OUTCOMES), width=140)
JUDGED_COLUMNS = (
    OUTCOME_COLUMN,
    Override("Decision", words=recorded(DECISIONS), width=120),
    Override("Margin", unit=Unit.PERCENT),
)
# The advice of a run's own report: the name in the answer, and the heading.
ADVICE_COLUMNS = (("likely_cause", "Likely cause"), ("next_step", "Next"))
LONG_TEXTS = tuple(Override(heading, long=True, no_value="-") for _, heading in ADVICE_COLUMNS)
REPORT = DataLink("Report", REPORT_URL)
ITS_TIME = "&from=${__data.fields.started_ms.numeric}&to=${__data.fields.ended_ms.numeric}"
SAME_RUN = DataLink(
    "This run's drives", f"/d/{DRIVES}?var-host=${{__data.fields.host}}&var-run=${{__data.fields.run}}{ITS_TIME}"
)
TO_COMPARE = DataLink("Compare with another run", f"/d/{COMPARE}?var-run_a=${{__data.fields.run}}")


def _span(name: str, colour: Colour, *kinds: str, enabled: bool = True, policy: str = "") -> Annotation:
    where = (*HERE, one_of("kind", *kinds), equals("extent", "span"))
    query = Query("bench_event", (value("text"), value("end_ms")), where, tags=("kind", "source"), policy=policy)
    return Annotation(name, colour, query, kinds, enabled)


def _moment(name: str, colour: Colour, *kinds: str, policy: str = "") -> Annotation:
    where = (*HERE, one_of("kind", *kinds), differs("extent", "span"))
    query = Query("bench_event", (value("text"),), where, tags=("kind", "source"), policy=policy)
    return Annotation(name, colour, query, kinds)


# The agent's data is drawn while it happens. Data that is only known at the run's end lies in the history alone.
ANNOTATIONS = (
    _span("Phases", Colour.CALM, "phase"),
    _moment("Begin of a phase", Colour.OFFERED, "phase"),
    _span("Tests and suites", Colour.MUTED, "suite", "test", enabled=False),
    _span("Hazards in force", Colour.ALARM, "hazard"),
    _moment("Hazard commanded or released", Colour.ALARM, "hazard"),
    _span("BUSY", Colour.WATCH, "busy", policy=HISTORY),
    _moment("Errors and interruptions", Colour.BAD, "error", "interruption"),
    _moment("Verdict", Colour.ODD, "verdict", policy=HISTORY),
    _moment("Telemetry and resumption", Colour.MUTED, "telemetry", "resumption"),
)


def links(here: str) -> tuple[Link, ...]:
    """Returns links to the other dashboards. Each opens with its own range: minutes of a run, days of a drive, months of a fleet. The
    choice goes along between those of one candidate alone: All of the fleet is no candidate."""
    names = (
        (LIVE, "Run live", "what the candidate does now"),
        (DRIVES, "Drive health", "SMART of each drive over time"),
        (DRIVE_HISTORY, "Drive history", "the same over months, when raw points are gone"),
        (FLEET, "Fleet and history", "outcomes and margins of all candidates"),
        (COMPARE, "Compare two runs", "two runs laid over each other"),
    )
    of_one = (LIVE, DRIVES, DRIVE_HISTORY)
    return tuple(
        Link(title, f"/d/{uid}", tooltip, keep_range=False, variables=here in of_one and uid in of_one)
        for uid, title, tooltip in names
        if uid != here
    )


def line(
    measurement: str,
    column: Expression,
    alias: str,
    *by: str,
    where: tuple[Condition, ...] = HERE,
    optional: bool = False,
    policy: str = "",
) -> Target:
    """Returns lines over time, one for each combination of the tags `by`. `optional`: not all hardware has what they show."""
    query = over_time(measurement, column, where, *by, policy=policy)
    needs = tuple(f"{name}.{field}" for name, field in sorted(query.used())) if optional else ()
    return Target(query, alias, needs=needs)


VERDICT_COLUMNS = (
    ("requirement", "Requirement"),
    ("text", "It asks"),
    ("outcome", "Outcome"),
    ("decision", "Decision"),
    ("measured", "Measured"),
    ("bound", "Bound"),
    ("unit", "Unit"),
    ("margin_percent", "Margin"),
)


def newest_run(
    where: tuple[Condition, ...], *by: str, tags: tuple[str, ...] = (), result: str = "result", in_range: bool = True
) -> Query:
    """Returns a query of the newest judged run, timed at its end, with its own advice: a run of an older bench has none, and gets no
    earlier run's."""
    columns = (last("word").named(result), *(value(name) for name, _ in ADVICE_COLUMNS))
    return Query("bench_run", columns, (*where, JUDGED_RUN), by, policy=HISTORY, tags=tags, in_range=in_range)


def verdict_of(*where: Condition, in_range: bool, limit: int = 0) -> Query:
    """Returns a query of each requirement of runs, as stored for ever; the overall outcome has a place of its own."""
    columns = tuple(
        value(name) for name in ("text", "outcome", "decision", "measured", "bound", "unit", "margin_percent")
    )
    run = value("of_run").named("run")
    return Query(
        "bench_verdict",
        (*columns, run),
        (*where, differs("requirement", "overall")),
        policy=HISTORY,
        in_range=in_range,
        newest_first=True,
        limit=limit,
        tags=("requirement", "host"),
    )
