"""Parts of *Run live*: the soundness of the telemetry itself, and the verdict."""

from __future__ import annotations

from daq_bench.bench_dashboards.common import (
    ADVICE_COLUMNS,
    BAR_LASTS,
    HERE,
    JUDGED_COLUMNS,
    JUDGED_RUN,
    LATELY,
    LONG_TEXTS,
    NO_VERDICT,
    OWN_AGENT,
    REPORT,
    VERDICT_COLUMNS,
    line,
    newest_run,
    verdict_of,
)
from daq_bench.bench_dashboards.influxql import (
    HISTORY,
    Condition,
    Query,
    chosen,
    chosen_text,
    growth,
    highest,
    last,
    over_time,
    rate_over_time,
)
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import OUTCOMES, Colour, Override, Thresholds, Unit
from daq_bench.bench_dashboards.panels import WORST, Stat, Table, Target, TimeSeries

OWN = (*HERE, OWN_AGENT)
PER_COLLECTOR_POINTS = 60  # in 15 min one each 15 s, the highest value of each


def telemetry() -> Section:
    def agent(field: str, title: str, description: str, unit: Unit, step: bool = False) -> TimeSeries:
        """One of the agent's own series per collector; `step`: growth of a counter."""
        column = growth(highest(field)) if step else highest(field)
        query = over_time("telemetry_agent", column, HERE, "collector")
        return TimeSeries(
            title, description, (Target(query, "$tag_collector"),), unit, legend=(), most_points=PER_COLLECTOR_POINTS
        )

    spool = TimeSeries(
        "Points that wait for InfluxDB",
        "Rises while InfluxDB is away, and falls when it is back. Nothing is lost by it. Two agents of a run: the larger number.",
        (
            line("telemetry_agent", highest("undelivered_points"), "in the spool $tag_run", "run"),
            line("telemetry_agent", highest("unspooled_points"), "not spooled $tag_run", "run"),
            line("telemetry_agent", highest("rejected_points"), "rejected $tag_run", "run"),
            line("telemetry_agent", highest("thinned_points"), "thinned $tag_run", "run"),
        ),
        Unit.COUNT,
    )
    return Section(
        "Telemetry's own health",
        Row(
            7,
            agent(
                "staleness_s",
                "Age of each collector's last sample",
                "A saw-tooth as high as the collector's period. A ramp: it hangs.",
                Unit.SECONDS,
            ),
            agent(
                "missed_samples",
                "Missed samples",
                "Deadlines that passed without a good sample, per interval. Should be zero.",
                Unit.COUNT,
                step=True,
            ),
            agent(
                "duration_s",
                "Time that a sample takes",
                "ipmitool takes seconds, /proc under a millisecond. Growth means a sensor that gets slow.",
                Unit.SECONDS,
            ),
            spool,
        ),
        Row(
            7,
            agent(
                "lateness_s",
                "Lateness of fast samples",
                "Largest delay behind the deadline. At 10 Hz, 0.1 s is a whole sample.",
                Unit.SECONDS,
            ),
            TimeSeries(
                "The agent's CPU time",
                "CPU time of the candidate's agent, and of the tools that it runs, as a share of one core.",
                (
                    Target(rate_over_time("telemetry_agent", "cpu_s", OWN, "run"), "agent $tag_run"),
                    Target(rate_over_time("telemetry_agent", "tools_cpu_s", OWN, "run"), "tools $tag_run"),
                ),
                Unit.FRACTION,
            ),
            TimeSeries(
                "The agent's memory and spool",
                "The agent on the candidate. Its memory must stay flat all night; its spool grows with the run, up to its bound.",
                (
                    line("telemetry_agent", highest("rss_max_bytes"), "memory $tag_run", "run", where=OWN),
                    line("telemetry_agent", highest("spool_bytes"), "spool $tag_run", "run", where=OWN),
                ),
                Unit.BYTES,
            ),
        ),
        folded=True,
    )


JUDGED: tuple[Condition, ...] = (chosen("host"), chosen_text("of_run", "run"))


def verdict() -> Section:
    judged = Query("bench_run", (last("word").named(WORST),), (*HERE, JUDGED_RUN), tags=("run",), policy=HISTORY)
    outcome = Stat(
        "Outcome",
        f"The outcome of the run judged last, of the last {BAR_LASTS}, and which run it is; a run that goes on has none. INADMISSIBLE: its "
        "evidence does not count. REHEARSAL: it was asked for less, and decides nothing about buying.",
        (Target(judged, "outcome", table=True),),
        Unit.TEXT,
        Thresholds(Colour.MUTED),
        words=OUTCOMES,
        text=True,
        whose=True,
        time_from=LATELY,
        no_value=NO_VERDICT,
    )
    table = Table(
        "Requirements of runs judged in this range",
        "Each requirement's bound, measured value and margin. A run has its rows when it is judged.",
        (Target(verdict_of(*JUDGED, in_range=True), table=True),),
        Unit.COUNT,
        overrides=(*JUDGED_COLUMNS, Override("run", links=(REPORT,))),
        columns=(*VERDICT_COLUMNS, ("run", "run")),
        sort="Margin",
        ascending=True,
    )
    why = Table(
        "Why, and what to do next",
        "The run judged last in the range shown, in its report's words; a click opens a text that is cut off.",
        (Target(newest_run(HERE, tags=("host", "run")), table=True),),
        Unit.COUNT,
        overrides=(
            Override("run", links=(REPORT,), width=200),
            Override("Judged", unit=Unit.AGE, width=130),
            *LONG_TEXTS,
        ),
        columns=(("run", "run"), ("Time", "Judged"), *ADVICE_COLUMNS),
    )
    return Section("Verdict", Row(4, outcome, why, widths=(5, 19)), Row(8, table))
