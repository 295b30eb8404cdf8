"""Alert rules for Grafana, in the format of its file provisioning. The user chooses who is told: they name no contact point.

Every rule asks one query, or two that are joined by their tags, takes the newest value of each series, and fires above or below a limit.
Ranges are by InfluxDB's clock and open to the future, so that a candidate whose clock is ahead is seen, too."""

from __future__ import annotations

import json
from dataclasses import dataclass

from daq_bench.bench_dashboards.common import BAR_LASTS_S, OWN_AGENT
from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_dashboards.influxql import (
    HISTORY,
    Condition,
    Query,
    above,
    equals,
    highest,
    last,
    lately,
    present_as,
    reads,
    reads_other_than,
    since,
    total,
)
from daq_bench.bench_dashboards.looks import NEAR_WARNING_K, RETIRED, Json

FOLDER = GROUP = "DAQ storage bench"
DATA_SOURCE = "daq-bench"  # uid, as the role `grafana` names it: a rule can have no variable
INTERVAL = "1m"
SILENT_S = 120
RUN_WATCHED_S = BAR_LASTS_S  # a run that was killed is told for as long; then its candidate has no verdict
LOSS_TOLD_S = 2 * 3600  # a loss is seen although the candidate's clock is an hour behind
HEAT_LASTS_S = 15 * 60  # drives are read each minute, or slower
CANDIDATE_KNOWN_S = 30 * 86400
CLOSING_PHASE = "telemetry"  # the phase that the rig announces just before it ends the agent
RUN = ("host", "run")
EXPRESSION = "__expr__"


@dataclass(frozen=True)
class Rule:
    """One alert rule. `also`: a second query, which must be above 0, too, for the same tags. `summary` and `remedy` are Grafana's
    templates, without dollar signs, which provisioning would expand."""

    uid: str
    title: str
    severity: str
    summary: str
    remedy: str
    query: Query
    range_s: int
    also: Query | None = None
    below: bool = False
    limit: float = 0
    wait: str = "0s"

    def json(self, declared: Declared) -> Json:
        """Raises BenchError for a measurement, tag or field that is not declared."""
        asked = {"A": self.query, **({"B": self.also} if self.also else {})}
        for query in asked.values():
            query.check(declared, f"alert rule {self.title}")
        reduced = dict(zip("CD", asked, strict=False))  # names of letters alone: a math expression knows no others
        data = [self._asks(name, query) for name, query in asked.items()]
        data += [
            _expression(name, "reduce", expression=of, reducer="last", settings={"mode": "dropNN"})
            for name, of in reduced.items()
        ]
        judged = "C"
        if self.also:
            judged = "E"
            data.append(_expression(judged, "math", expression="($C > 0) && ($D > 0)"))
        evaluator = {"type": "lt" if self.below else "gt", "params": [self.limit]}
        data.append(_expression("F", "threshold", expression=judged, conditions=[{"evaluator": evaluator}]))
        return {
            "uid": self.uid,
            "title": self.title,
            "condition": "F",
            "data": data,
            # A bench that does nothing answers nothing, and that is no fault. A candidate that falls silent is known by a value: its run is
            # open. A server that does not answer, or refuses a query, is told under Grafana's own name DatasourceError.
            "noDataState": "OK",
            "execErrState": "Error",
            "for": self.wait,
            "annotations": {"summary": self.summary, "description": self.remedy},
            "labels": {"severity": self.severity, "source": "daq-bench"},
            "isPaused": False,
        }

    def _asks(self, name: str, query: Query) -> Json:
        model = {
            "refId": name,
            "datasource": {"type": "influxdb", "uid": DATA_SOURCE},
            "query": query.render(),
            "rawQuery": True,
            "resultFormat": "time_series",
        }
        return _data(name, DATA_SOURCE, model, self.range_s)


def _expression(name: str, kind: str, **settings: object) -> Json:
    model = {"refId": name, "type": kind, "datasource": {"type": EXPRESSION, "uid": EXPRESSION}, **settings}
    return _data(name, EXPRESSION, model, 0)


def _data(name: str, data_source: str, model: Json, range_s: int) -> Json:
    return {
        "refId": name,
        "queryType": "",
        "relativeTimeRange": {"from": range_s, "to": 0},
        "datasourceUid": data_source,
        "model": model,
    }


def _added_up(by: tuple[str, ...], *found: Query) -> Query:
    """Combines what several queries found: a number for each combination of the tags `by`."""
    return Query(found, (total("worth").named("worth"),), by=by, in_range=False)


def _worth(
    measurement: str,
    worth: int,
    field: str,
    duration_s: int,
    *by: str,
    where: tuple[Condition, ...] = (),
    policy: str = "",
) -> Query:
    return Query(
        measurement,
        (present_as(worth, field).named("worth"),),
        (*where, since(duration_s)),
        by,
        policy=policy,
        in_range=False,
    )


def _silent() -> Rule:
    # A run has events while it lasts. The last that its agent delivers says that the agent will be ended; once it is judged, its events are
    # in the history. So 1 is an open run, and 0 or less one that is closing or judged.
    closing = (equals("kind", "phase"), equals("source", CLOSING_PHASE))
    is_open = _added_up(
        RUN,
        _worth("bench_event", 1, "text", RUN_WATCHED_S, *RUN),
        _worth("bench_event", -1, "text", RUN_WATCHED_S, *RUN, where=closing),
        _worth("bench_event", -1, "text", RUN_WATCHED_S, *RUN, policy=HISTORY),
    )
    is_silent = _added_up(
        RUN,
        _worth("telemetry_agent", 1, "staleness_s", RUN_WATCHED_S, *RUN),
        _worth("telemetry_agent", -1, "staleness_s", SILENT_S, *RUN, where=(OWN_AGENT,)),
    )
    return Rule(
        "daq-bench-silent",
        "SILENT while a run is open",
        "critical",
        f"No telemetry of {{{{ .Labels.host }}}} has come for more than {SILENT_S} s, although its run {{{{ .Labels.run }}}} is open.",
        "Look whether the candidate answers and whether the run still lasts (daq-bench history). A candidate whose clock is behind looks "
        "silent, too.",
        is_open,
        RUN_WATCHED_S,
        also=is_silent,
        wait="2m",
    )


def _loss() -> Rule:
    query = Query("daqwriter", (highest("lost_superchunks").named("lost"),), (since(LOSS_TOLD_S),), RUN, in_range=False)
    return Rule(
        "daq-bench-loss",
        "Superchunks are lost",
        "critical",
        "A record of run {{ .Labels.run }} on {{ .Labels.host }} has lost {{ .Values.C.Value }} superchunks.",
        "The run will not pass. See on Run live which drive's write rate fell first, and how warm it was.",
        query,
        LOSS_TOLD_S,
    )


def _margin() -> Rule:
    where = (reads("outcome", "PASS", "FAIL"), since(BAR_LASTS_S))
    by = ("host", "scenario", "requirement")
    query = Query("bench_verdict", (last("margin_percent").named("margin"),), where, by, policy=HISTORY, in_range=False)
    return Rule(
        "daq-bench-margin",
        "A requirement is missed",
        "warning",
        "The newest margin of {{ .Labels.requirement }} on {{ .Labels.host }} ({{ .Labels.scenario }}) is "
        '{{ printf "%.1f" .Values.C.Value }} %.',
        "Read the run's report, and compare the run with the last one that met it (Compare two runs).",
        query,
        BAR_LASTS_S,
        below=True,
    )


def _temperature() -> Rule:
    margin = (last("warning_degc") - last("temperature_degc")).named("margin")
    where = (
        above("warning_degc", 0),
        since(HEAT_LASTS_S),
    )  # a drive without a limit must give no row: of a null comes an alert
    query = Query(
        "smart_temperature", (margin,), where, ("host", "device", "serial", "model", "sensor"), in_range=False
    )
    return Rule(
        "daq-bench-temperature",
        "A drive is near its warning temperature",
        "warning",
        "Drive {{ .Labels.device }} ({{ .Labels.model }}, serial number {{ .Labels.serial }}) of {{ .Labels.host }} is "
        '{{ printf "%.1f" .Values.C.Value }} K below the temperature at which it warns.',
        "It will throttle. Look at the fans, the inlet's temperature and the other drives on Drive health.",
        query,
        HEAT_LASTS_S,
        below=True,
        limit=NEAR_WARNING_K,
        wait="2m",
    )


def _critical_warning() -> Rule:
    query = Query(
        "smart",
        (last("critical_warning").named("bits"),),
        (since(BAR_LASTS_S),),
        ("host", "device", "serial", "model"),
        in_range=False,
    )
    return Rule(
        "daq-bench-critical-warning",
        "A drive gives a critical warning",
        "critical",
        "Drive {{ .Labels.device }} ({{ .Labels.model }}, serial number {{ .Labels.serial }}) of {{ .Labels.host }} gives the NVMe "
        "critical warning {{ .Values.C.Value }}.",
        "The number adds up 1 spare capacity, 2 temperature, 4 reliability, 8 read only, 16 volatile memory's backup, 32 persistent "
        "memory. See nvme smart-log, and replace the drive unless it is temperature alone.",
        query,
        BAR_LASTS_S,
    )


def _no_verdict() -> Rule:
    newest = Query(
        "bench_run",
        (last("word").named("state"),),
        (lately(CANDIDATE_KNOWN_S),),
        ("host",),
        policy=HISTORY,
        in_range=False,
    )
    in_service = Query(
        newest,
        (present_as(1, "state").named("worth"),),
        (reads_other_than("state", RETIRED.value),),
        ("host",),
        in_range=False,
    )
    judged = _worth(
        "bench_run", -1, "outcome", BAR_LASTS_S, "host", where=(reads("outcome", "PASS", "FAIL"),), policy=HISTORY
    )
    query = _added_up(("host",), in_service, judged)
    hours = BAR_LASTS_S // 3600
    return Rule(
        "daq-bench-no-verdict",
        f"No verdict for {hours} h",
        "warning",
        f"{{{{ .Labels.host }}}} has had no PASS and no FAIL for more than {hours} h.",
        "Look at Fleet: its runs end as INADMISSIBLE or ERROR, do not end, or do not begin (systemctl list-timers). A candidate that is no "
        "longer in service is retired by a point (docs/dashboards.md).",
        query,
        CANDIDATE_KNOWN_S,
    )


RULES: tuple[Rule, ...] = (_silent(), _loss(), _margin(), _temperature(), _critical_warning(), _no_verdict())


def text(declared: Declared) -> str:
    """The file's content; the same on every machine."""
    rules = [one.json(declared) for one in RULES]
    group = {"orgId": 1, "name": GROUP, "folder": FOLDER, "interval": INTERVAL, "rules": rules}
    return json.dumps({"apiVersion": 1, "groups": [group]}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
