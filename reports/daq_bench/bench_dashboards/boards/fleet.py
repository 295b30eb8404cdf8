"""*Fleet and nightly history*: outcomes and margins of all candidates, from data that is kept for ever."""

from __future__ import annotations

from daq_bench.bench_dashboards.common import (
    ADVICE_COLUMNS,
    BAR_LASTS,
    BAR_LASTS_S,
    FLEET,
    ITS_TIME,
    JUDGED_COLUMNS,
    JUDGED_RUN,
    LATELY,
    LIVE,
    LONG_TEXTS,
    NO_VERDICT,
    OUTCOME_COLUMN,
    OWN_AGENT,
    REPORT,
    SAME_RUN,
    TO_COMPARE,
    VERDICT_COLUMNS,
    links,
    newest_run,
)
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.furniture import TagValues
from daq_bench.bench_dashboards.influxql import (
    HISTORY,
    Condition,
    Expression,
    Query,
    above,
    ahead,
    chosen,
    count,
    differs,
    last,
    lately,
    lowest,
    most_frequent,
    present_as,
    reads,
    reads_other_than,
    since,
    so_far,
    total,
    value,
    whole,
)
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import (
    BEGUN,
    JUDGING,
    NONE_ALLOWED,
    OUTCOMES,
    RETIRED,
    Colour,
    DataLink,
    Override,
    Thresholds,
    Unit,
    Word,
    without_green,
)
from daq_bench.bench_dashboards.panels import WORST, Stat, StateTimeline, Table, Target, TimeSeries

WHO: tuple[Condition, ...] = (chosen("host"), chosen("scenario"))
WHAT: tuple[Condition, ...] = (*WHO, chosen("model"), chosen("requirement"), differs("requirement", "overall"))
STATES = (*OUTCOMES, BEGUN, JUDGING)
ANSWERED_S = 120
JUDGED_WITHIN_S = 3600  # [P] a bench that judges for longer was killed
OPEN, ANSWERS, IS_JUDGED = 1, 2, 4
NOW = (
    Word("0", "-", Colour.CLEAR),
    Word(str(OPEN), "SILENT", Colour.ALARM),
    *(Word(str(one), "runs", Colour.CALM) for one in (ANSWERS, OPEN + ANSWERS)),
    *(Word(str(OPEN + IS_JUDGED + one), "JUDGING", Colour.CALM) for one in (0, ANSWERS)),
)
MARGIN = Thresholds(Colour.BAD, ((0, Colour.WATCH), (10, Colour.GOOD)))
WATCH_IT = DataLink(
    "Replay it on Run live",
    f"/d/{LIVE}?var-host=${{__data.fields.host}}&var-run=${{__data.fields.run}}{ITS_TIME}",
)

FOLLOW_IT = DataLink(
    "Follow it on Run live", f"/d/{LIVE}?var-host=${{__data.fields.host}}&var-run=${{__data.fields.run}}"
)


def _all(name: str, label: str, description: str, *where: str) -> TagValues:
    return TagValues(
        name,
        label,
        description,
        name,
        "bench_verdict",
        policy=HISTORY,
        field="outcome",
        where=tuple((one, one) for one in where),
        several=True,
        all_of_them=True,
    )


def _verdicts(column: Expression, *by: str, where: tuple[Condition, ...] = WHAT) -> Query:
    return Query("bench_verdict", (column,), where, by, policy=HISTORY)


def _newest_state(when: Condition) -> Query:
    """The newest word of each candidate in the history: an outcome, or that a run has begun, or that the candidate is retired."""
    return Query("bench_run", (last("word").named("result"),), (*WHO, when), ("host",), policy=HISTORY, in_range=False)


def _header() -> Row:
    runs = Query("bench_run", (count("outcome"),), WHO, policy=HISTORY)
    counted = (*WHAT, reads("outcome", "PASS", "FAIL"))
    margins = _verdicts(last("margin_percent").named("margin"), "requirement", "host", where=counted)
    answered = last("staleness_s").named("age")
    running = Query(
        "telemetry_agent", (answered,), (chosen("host"), OWN_AGENT, since(ANSWERED_S)), ("host", "run"), in_range=False
    )
    return Row(
        5,
        Table(
            "Runs now",
            "The runs whose agents answered within the last two minutes, whatever the range. Empty: nothing runs. An answer of the future: "
            "the candidate's clock is ahead, and other boards show it once that time has come.",
            (Target(running, table=True),),
            Unit.COUNT,
            overrides=(Override("Answered", unit=Unit.AGE), Override("run", links=(FOLLOW_IT,))),
            columns=(("host", "host"), ("run", "run"), ("Time", "Answered")),
            sort="host",
            ascending=True,
        ),
        _by_outcome(),
        Stat(
            "Runs in this range",
            "How many were judged. Fewer than nights: something kept a run from finishing.",
            (Target(runs, "runs"),),
            Unit.COUNT,
            Thresholds(Colour.CALM),
            no_value="0",
        ),
        Stat(
            "Smallest newest margin",
            f"The newest value of each candidate and requirement, of the last {BAR_LASTS}, that lies nearest to, or furthest beyond, its "
            "bound. Evidence that does not count (INADMISSIBLE, ERROR) is left out.",
            (Target(Query(margins, (lowest("margin").named(WORST),), tags=("host", "requirement")), table=True),),
            Unit.PERCENT,
            MARGIN,
            needs=("bench_verdict.margin_percent",),
            whose=True,
            decimals=1,
            time_from=LATELY,
            no_value=NO_VERDICT,
        ),
        widths=(8, 8, 3, 5),
    )


def _by_outcome() -> Stat:
    """How many candidates there are of each outcome: in a table of a hundred, a FAIL of this night is far below the first row."""

    def of(word: Word) -> Target:
        newest = _newest_state(lately(BAR_LASTS_S))
        query = Query(newest, (count("result"),), (reads("result", word.value),), in_range=False)
        return Target(query, word.text, counts=True)

    known = Query(
        _newest_state(so_far()),
        (present_as(1, "result").named("worth"),),
        (reads_other_than("result", RETIRED.value),),
        ("host",),
        in_range=False,
    )
    fresh = Query(
        "bench_run",
        (present_as(-1, "word").named("worth"),),
        (*WHO, lately(BAR_LASTS_S)),
        ("host",),
        policy=HISTORY,
        in_range=False,
    )
    found = Query((known, fresh), (total("worth").named("silent"),), by=("host",), in_range=False)
    silent = Query(found, (count("silent"),), (above("silent", 0),), in_range=False)
    return Stat(
        "Candidates by newest outcome",
        f"How many candidates have which outcome, of the last {BAR_LASTS}; not ended: their newest run goes on, or broke off; none: those "
        "of this range that have had no run for so long. Sort the table below by its outcome to see which.",
        (*(of(one) for one in STATES), Target(silent, "none", counts=True)),
        Unit.COUNT,
        Thresholds(Colour.MUTED),
        overrides=tuple(Override(one.text, colour=one.colour) for one in STATES),
        per_series=True,
        no_value="-",
    )


def _newest_runs() -> Table:
    """One row for a candidate. InfluxQL colours nothing by its age, so it is asked twice: for the newest state that is not old, and for the
    newest verdict at all. A verdict of the future has a column of its own: it takes the place of none."""
    fresh = _newest_state(lately(BAR_LASTS_S))
    known = Query(
        "bench_run",
        (present_as(1, "word").named("worth"),),
        (*WHO, so_far()),
        ("host",),
        policy=HISTORY,
        in_range=False,
    )
    # Beside all that are known: a column that has no value at all is there, too.
    states = Query(
        (fresh, known),
        (most_frequent("result").named("result"), total("worth").named("worth")),
        by=("host",),
        in_range=False,
    )
    at_all = newest_run((*WHO, so_far()), "host", result="last_result", in_range=False)
    future = Query(
        "bench_run", (last("outcome").named("then"),), (*WHO, ahead()), ("host",), policy=HISTORY, in_range=False
    )

    def reading(worth: int, name: str, within_s: int, *words: Word) -> Query:
        told = reads("result", *(one.value for one in words))
        newest = _newest_state(lately(within_s))
        return Query(newest, (present_as(worth, "result").named(name),), (told,), ("host",), in_range=False)

    is_open = reading(OPEN, "open", BAR_LASTS_S, BEGUN, JUDGING)
    is_judged = reading(IS_JUDGED, "judged", JUDGED_WITHIN_S, JUDGING)
    answers = Query(
        "telemetry_agent",
        (present_as(ANSWERS, "staleness_s").named("answers"),),
        (chosen("host"), OWN_AGENT, since(ANSWERED_S)),
        ("host",),
        in_range=False,
    )
    now, last_outcome, too_early = "Now", "Last, however old", "Clock ahead"
    return Table(
        "Newest run of each candidate",
        f"Longest ago first. Outcome: of the last {BAR_LASTS} alone. A candidate that is not run any more has none, whatever its last "
        "outcome was. Now: SILENT where a run has not ended and its agent has not answered for two minutes, or where the bench has judged "
        "for an hour; it broke off. Why it probably ended so and what to do next are its report's words; a click opens a text that is cut "
        "off. Clock ahead: a verdict that comes from the future, and stands in no other column.",
        (
            Target(states, table=True),
            Target(at_all, table=True, time="Judged"),
            Target(is_open, table=True, counts=True),
            Target(is_judged, table=True, counts=True),
            Target(answers, table=True, counts=True),
            Target(future, table=True, time=too_early, counts=True),
        ),
        Unit.COUNT,
        overrides=(
            Override("host", width=170),
            Override("Outcome", words=(*STATES, RETIRED), width=170, no_value=NO_VERDICT),
            Override(now, words=NOW, width=90),
            Override("Judged", unit=Unit.AGE, width=130),
            Override(last_outcome, width=150, muted=True),
            *LONG_TEXTS,
            Override(too_early, unit=Unit.AGE, width=110),
        ),
        columns=(
            ("host", "host"),
            ("result", "Outcome"),
            (now, now),
            ("Judged", "Judged"),
            ("last_result", last_outcome),
            *ADVICE_COLUMNS,
            (too_early, too_early),
        ),
        sort="Judged",
        ascending=True,
        merged=True,
        sums=((now, ("open", "judged", "answers")),),
    )


def _outcomes() -> tuple[Row, ...]:
    lanes = StateTimeline(
        "Outcome of each candidate, night by night",
        "One lane for each candidate; a bar lasts until its next run begins, and 36 h at most; a run is blue until it has ended. A change "
        "of colour, or a gap, is where to look.",
        (Target(Query("bench_run", (value("word"),), WHO, ("host",), policy=HISTORY), "$tag_host"),),
        Unit.TEXT,
        words=(*STATES, RETIRED),
        lasts_s=BAR_LASTS_S,
    )
    newest = _newest_runs()
    facts = (
        whole(value("started_ns") / 1e6).named("started_ms"),
        whole(value("started_ns") / 1e6 + value("duration_s") * 1e3).named("ended_ms"),
        value("duration_s").named("duration"),
        value("word").named("result"),
    )
    tags = ("host", "scenario", "profile", "model", "run")
    finished = Query("bench_run", facts, (*WHO, JUDGED_RUN), policy=HISTORY, newest_first=True, limit=50, tags=tags)
    runs = Table(
        "Last runs",
        "Newest first. Each run leads to its report, to its time on Run live, and to a comparison.",
        (Target(finished, table=True),),
        Unit.COUNT,
        overrides=(
            OUTCOME_COLUMN,
            Override("Took", unit=Unit.DURATION, width=120),
            Override("/^(started|ended)_ms$/", hidden=True),
            Override("run", links=(REPORT, WATCH_IT, SAME_RUN, TO_COMPARE)),
        ),
        columns=(
            ("Time", "Judged"),
            ("host", "host"),
            ("scenario", "Scenario"),
            ("profile", "Profile"),
            ("model", "Model"),
            ("result", "Outcome"),
            ("duration", "Took"),
            ("run", "run"),
            ("started_ms", "started_ms"),
            ("ended_ms", "ended_ms"),
        ),
    )
    return (Row(8, newest), Row(10, lanes), Row(9, runs))


def _margins() -> Section:
    by = ("requirement", "host", "model", "firmware")
    over_time = TimeSeries(
        "Margin of each requirement, by model and firmware",
        "Above 0 % the requirement is met. A margin that shrinks night by night is a drive that ages, or a firmware that differs.",
        (Target(_verdicts(value("margin_percent"), *by), "$tag_requirement $tag_model $tag_firmware ($tag_host)"),),
        Unit.PERCENT,
        MARGIN,
        needs=("bench_verdict.margin_percent",),
        limits=True,
        points=True,
        legend=("lastNotNull", "min"),
    )
    # One point's values together: a run that did not measure it has no value, and gets no earlier run's.
    others = tuple(value(name) for name, _ in VERDICT_COLUMNS[1:] if name != "decision")
    newest_of = (last("decision").named("decision"), *others)
    newest = Table(
        "Newest value of each requirement",
        "By candidate, model and firmware: what the newest run measured against which bound, and how long ago.",
        (Target(Query("bench_verdict", newest_of, WHAT, by, policy=HISTORY), table=True),),
        Unit.COUNT,
        overrides=(
            *JUDGED_COLUMNS[:2],
            Override("Margin", unit=Unit.PERCENT, thresholds=without_green(MARGIN)),
            Override("Judged", unit=Unit.AGE, width=130),
        ),
        columns=(
            ("requirement", "Requirement"),
            ("host", "Candidate"),
            ("Time", "Judged"),
            ("model", "Model"),
            ("firmware", "Firmware"),
            *VERDICT_COLUMNS[1:],
        ),
        sort="Margin",
        ascending=True,
    )
    return Section("Margins", Row(11, over_time), Row(10, newest))


def _accounting() -> Section:
    fields = (
        ("collected_points", "Collected"),
        ("spooled_points", "Spooled"),
        ("delivered_points", "Delivered"),
        ("rejected_points", "Rejected"),
        ("undelivered_points", "Undelivered"),
        ("unspooled_points", "Unspooled"),
    )
    query = Query(
        "telemetry_agent",
        tuple(last(name).named(name) for name, _ in fields),
        (chosen("host"),),
        ("host", "run", "instance"),
    )
    table = Table(
        "The agents' accounts",
        "Points of each run as its agent counted them last. Collected = spooled + unspooled; spooled = delivered + rejected + "
        "undelivered. Unspooled: not written yet when it counted, so that a few are its own last points. Kept as long as raw "
        "points are (14 days). Agent: empty for the candidate's own, bmc for the one that reads its BMC over the network.",
        (Target(query, table=True),),
        Unit.COUNT,
        overrides=(
            Override("Rejected", thresholds=without_green(NONE_ALLOWED)),
            Override("run", links=(REPORT,)),
        ),
        columns=(("host", "Candidate"), ("run", "run"), ("instance", "Agent"), *fields),
        sort="run",
    )
    return Section("Telemetry accounts", Row(8, table))


DASHBOARD = Dashboard(
    uid=FLEET,
    title="Fleet and nightly history",
    description="Outcomes and margins of all candidates, night by night; kept for ever.",
    sections=(Section("", _header(), *_outcomes()), _margins(), _accounting()),
    variables=(
        _all("host", "Candidate", "Servers that were ever judged"),
        _all("scenario", "Scenario", "Scenarios that ran on them", "host"),
        _all("model", "Drive model", "Model of the target's first drive", "host"),
        _all("requirement", "Requirement", "Requirements by id", "host", "scenario"),
    ),
    links=links(FLEET),
    begin="now-30d",
    refresh="5m",
)
