"""A scene with known answers, and what the boards show of it: one table, for tests with and without Grafana's code.

`rows` is what InfluxDB answers to the panel's first query, times left out. `shown` is what Grafana makes of it; both follow from the scene
alone: from its lines below, from the board's bounds as docs/dashboards.md states them, and from Grafana's names of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daq_bench.bench_dashboards.boards.compare import DASHBOARD as COMPARE
from daq_bench.bench_dashboards.boards.drive_health import DASHBOARD as DRIVE_HEALTH
from daq_bench.bench_dashboards.boards.fleet import DASHBOARD as FLEET
from daq_bench.bench_dashboards.boards.run_live import DASHBOARD as RUN_LIVE
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.interpolation import Choice, Every, Range
from daq_bench.bench_model.behaviour.aligned import EPOCH_NS
from daq_bench.rig.base.event_lines import string

SECOND_NS = 10**9
HOUR_S, DAY_S = 3600, 24 * 3600
BARE = 'it\'s "one" (rack/3)'  # a careless query would take it for the end of a text, or for a pattern
BARE_IN_LINES = BARE.replace(" ", "\\ ")


def raw_lines(now_ns: int) -> str:
    """Five candidates: one whose run is in trouble after one of yesterday that lost data, one that is well, one that fell silent ten
    minutes ago, one without sensors, and one that has not run since yesterday. The drives of two more were read an hour later and an hour
    earlier than 36 h ago, one has 24 drives, the clock of one more is an hour ahead, and one more has two runs at one time."""
    found = []

    def put(age_s: float, series: str, *fields: str) -> None:
        found.append(f"{series} {','.join(fields)} {now_ns - int(age_s * SECOND_NS)}")

    def writer(age_s: float, who: str, backlog: int, lost: int, *more: str) -> None:
        put(age_s, f"daqwriter,{who}", f"backlog_bytes={backlog}i,buffer_bytes=10000i,lost_superchunks={lost}i", *more)

    def drive(who: str, nth: int, degc: float, limit: float, smart: str = "", age_s: float = 0) -> None:
        of_drive = f"{who},device=nvme{nth}n1"
        limits = f"temperature_degc={degc},warning_degc={limit}"
        put(age_s, f"temperature,{of_drive},label=Composite", limits)
        put(age_s, f"smart_temperature,{of_drive},serial=S{nth},sensor=composite", limits)
        if smart:
            put(age_s, f"smart,{of_drive},serial=S{nth},model=m", smart)

    health = (
        "passed={},critical_warning={}i,percentage_used_percent={}i,available_spare_percent={}i,media_errors={}i,"
        "critical_temperature_time_min={}i"
    )
    for host in ("busy", "gone"):
        run = f"host={host},run=r1"
        writer(DAY_S, run, 10_000, 169_682, "total_s=100", "elapsed_s=30")
        put(DAY_S, f"bench_event,{run},kind=phase", 'text="drain",end_ms=0i')
        put(DAY_S, f"telemetry_agent,{run},collector=cpu", "staleness_s=0.5")
    busy, calm, silent = "host=busy,run=r2", "host=calm,run=c1", "host=silent,run=s1"
    bare = f"host={BARE_IN_LINES},run=b1"
    writer(120, busy, 9991, 0)
    writer(30, busy, 4000, 0)
    writer(0, busy, 5000, 0, "total_s=100", "elapsed_s=40")
    for age_s, phase in ((300, "identity"), (60, "record 1 of 6")):
        put(age_s, f"bench_event,{busy},kind=phase", f'text="{phase}",end_ms=0i')
    put(30, f"telemetry_agent,{busy},collector=smart", "staleness_s=4")
    account = "collected_points={}i,spooled_points=100i,delivered_points=97i,rejected_points={}i,undelivered_points=0i,unspooled_points={}i"
    put(0, f"telemetry_agent,{busy},collector=cpu", "staleness_s=0.25", account.format(105, 3, 5))
    drive(busy, 0, 75, 85, health.format("true", 0, 100, 1, 0, 0), age_s=600)  # replaced, by one of the same name
    drive(busy, 0, 75, 85, health.format("true", 0, 10, 90, 0, 0))
    drive(busy, 1, 68, 70, health.format("true", 0, 93, 50, 0, 0))
    drive(busy, 2, 40, 85, health.format("false", 1, 20, 4, 7, 3))
    put(0, f"pcie_link,{busy},device=nvme0n1", "bandwidth_fraction=1")
    put(0, f"pcie_link,{busy},device=nvme1n1", "bandwidth_fraction=0.5")
    put(0, f"ipmi_sensor,{busy},sensor=Fan1,kind=fan,entity=29.1", "severity=0i")
    put(0, f"ipmi_sensor,{busy},sensor=Inlet,kind=temperature,entity=55.1", "severity=2i")
    writer(0, calm, 0, 0)
    put(60, f"bench_event,{calm},kind=phase", 'text="precondition",end_ms=0i')
    put(0, f"telemetry_agent,{calm},collector=cpu", "staleness_s=0.1", account.format(97, 0, 0))
    drive(calm, 0, 40, 80, health.format("true", 0, 0, 100, 0, 0))
    writer(660, silent, 9000, 2)
    writer(600, silent, 10_000, 5, "total_s=100", "elapsed_s=100")
    put(600, f"telemetry_agent,{silent},collector=cpu", "staleness_s=0.5")
    # Its BMC is read from the control node, by an agent that goes on when the candidate is dead.
    put(0, f"telemetry_agent,{silent},collector=redfish,instance=bmc", "staleness_s=1", account.format(60, 1, 0))
    drive(silent, 0, 79, 77, age_s=600)
    put(0, f"telemetry_agent,{bare},collector=cpu", "staleness_s=20")
    # A server of 24 drives: another one is the worst by each value.
    for nth in range(24):
        own = health.format("true", int(nth == 9), nth * 5 % 24, 100 - nth * 11 % 24, 3 * (nth == 10), 2 * (nth == 21))
        drive("host=large,run=l1", nth, 40 + nth * 7 % 24, 80, own)
    for hours in (35, 37):
        drive(f"host=h{hours},run=h{hours}1", 0, 40, 80, health.format("true", 0, 0, 100, 0, 0), age_s=hours * HOUR_S)
    for run, total, elapsed, backlog, age_s in ((1, 100, 10, 9000, 1), (2, 50, 20, 0, 0)):
        writer(age_s, f"host=two,run=t{run}", backlog, 0, f"total_s={total}", f"elapsed_s={elapsed}")
    put(10, "telemetry_agent,host=going,run=g2,collector=cpu", "staleness_s=0.5")
    found += _mixed_lines(now_ns)
    for hours, host in ((1, "fast"), (2, "fast"), (48, "far")):
        put(-hours * HOUR_S, f"telemetry_agent,host={host},run=q1,collector=cpu", "staleness_s=0.5")
    return "\n".join(found) + "\n"


def _mixed_lines(now_ns: int) -> list[str]:
    """A candidate whose values of before the ranges, of their begin and of now all differ, with two runs at one time."""
    found = []

    def put(series: str, *by_age: tuple[float, str]) -> None:
        name, _, tags = series.partition(",")
        found.extend(f"{name},host=mixed,{tags} {fields} {now_ns - int(age_s * SECOND_NS)}" for age_s, fields in by_age)

    def writer(backlog: int, size: int, lost: int, total: int, elapsed: int) -> str:
        return f"backlog_bytes={backlog}i,buffer_bytes={size}i,lost_superchunks={lost}i,total_s={total},elapsed_s={elapsed}"

    put("daqwriter,run=m0", (1000, writer(9900, 10_000, 50, 900, 1)))
    put("daqwriter,run=m1", (40, writer(8000, 20_000, 1, 900, 10)), (20, writer(6000, 10_000, 3, 400, 340)))
    put("daqwriter,run=m2", (20, writer(1000, 10_000, 2, 50, 45)))
    put(
        "temperature,run=m1,device=nvme0n1,label=Composite",
        (40, "temperature_degc=50,warning_degc=90"),
        (20, "temperature_degc=60,warning_degc=85"),
    )
    put("temperature,run=m1,device=nvme9n1,label=Composite", (1000, "temperature_degc=85,warning_degc=85"))
    put("temperature,run=m1,label=CPU", (20, "temperature_degc=80,warning_degc=81"))
    account = "collected_points={0}i,spooled_points={0}i,delivered_points={0}i,rejected_points=0i,undelivered_points=0i,unspooled_points=0i"
    put(
        "telemetry_agent,run=m1,collector=cpu",
        (40, f"staleness_s=3,{account.format(7)}"),
        (20, f"staleness_s=1,{account.format(9)}"),
    )
    put("telemetry_agent,run=m0,collector=old", (31 * DAY_S, f"staleness_s=50,{account.format(5)}"))
    put("telemetry_agent,run=m1,collector=old", (1000, "staleness_s=50"))
    put("ipmi_sensor,run=m1,sensor=A,kind=fan,entity=29.1", (40, "severity=2i"), (20, "severity=0i"))
    put("ipmi_sensor,run=m1,sensor=B,kind=fan,entity=29.2", (1000, "severity=3i"))

    def smart(*numbers: int) -> str:
        names = ("critical_warning", "percentage_used_percent", "available_spare_percent", "media_errors", "critical_temperature_time_min",
                 "error_log_entries", "reallocated_sectors", "temperature_degc", "data_written_bytes", "power_on_hours",
                 "unsafe_shutdowns")  # fmt: skip
        told = ",".join(
            f"{name}={value}{'' if name == 'temperature_degc' else 'i'}"
            for name, value in zip(names, numbers, strict=True)
        )
        return f"passed={'false' if numbers[0] else 'true'},{told}"

    worst = smart(9, 99, 1, 99, 99, 99, 99, 99, 99, 99, 99)
    put("smart,run=m1,device=nvme0n1,serial=S0,model=m", (HOUR_S, smart(1, 50, 20, 9, 8, 7, 6, 70, 10**9, 40, 5)),
        (20, smart(0, 30, 60, 0, 0, 1, 0, 50, 2 * 10**9, 41, 4)))  # fmt: skip
    put("smart,run=m1,device=nvme8n1,serial=S8,model=m", (8 * DAY_S, worst))
    put("smart_temperature,run=m1,device=nvme0n1,serial=S0,sensor=composite", (HOUR_S, "temperature_degc=50,warning_degc=90"),
        (20, "temperature_degc=60,warning_degc=85"))  # fmt: skip
    put(
        "smart_temperature,run=m1,device=nvme8n1,serial=S8,sensor=composite",
        (37 * HOUR_S, "temperature_degc=85,warning_degc=85"),
    )
    put("pcie_link,run=m1,device=nvme0n1", (HOUR_S, "bandwidth_fraction=0.5"), (20, "bandwidth_fraction=1"))
    put("pcie_link,run=m1,device=nvme8n1", (8 * DAY_S, "bandwidth_fraction=0.25"))
    return found


CAUSE = 'nvme0n1 says "Größe \\x1b, 5 °C=limit", twice; ' + "as long as an advice lets it be, " * 7 + "at least"
STEP = 'Look into SNB-01, then: `daq-bench qualify --target "a b"`'
PASSED = "Nothing is open."


def history_lines(now_ns: int) -> str:
    """FAIL beside a rehearsal that missed by more; a PASS of 20 days ago, of 37 h, of 35 h, of six minutes and, by its clock, one to
    come in an hour; two runs to be compared. c1 is of a
    bench that wrote no advice yet. b0 is an earlier run of b's, whose cause is not b1's."""
    found = [
        f'bench_run,host=b,scenario=s,model=m,firmware=f,profile=p,run=b0 started_ns=1i,duration_s=90.0,outcome="FAIL",word="FAIL",'
        f'likely_cause="of b0",next_step="after b0" {now_ns - 21 * DAY_S * SECOND_NS}'
    ]
    advice = {
        "a": f",likely_cause={string(CAUSE)},next_step={string(STEP)}",
        "b": f",next_step={string(STEP)}",
        "calm": f',likely_cause="",next_step={string(PASSED)}',
    }
    judged = (
        ("a", "FAIL", "FAIL", "missed", -3.5, 24 * 60),
        ("b", "INADMISSIBLE", "REHEARSAL", "missed", -90.0, 20 * 60),
        ("c", "PASS", "PASS", "met", 12.0, 20 * 24 * 60),
        ("calm", "PASS", "PASS", "met", 30.0, 6),
        ("h35", "PASS", "PASS", "met", 20.0, 35 * 60),
        ("h37", "PASS", "PASS", "missed", -60.0, 37 * 60),  # an advisory requirement
        ("fast", "PASS", "PASS", "met", 40.0, -61),
        ("faulty", "ERROR", "ERROR", "missed", -70.0, 11 * 60),
        ("doubtful", "INADMISSIBLE", "INADMISSIBLE", "undecided", -1.5, 12 * 60),
    )
    for host, outcome, word, decision, margin, minutes in judged:
        at = now_ns - minutes * 60 * SECOND_NS
        tags = f"host={host},scenario=s,model=m,firmware=f"
        found += [
            f'bench_verdict,{tags},requirement=overall of_run="{host}1",outcome="{outcome}",word="{word}" {at}',
            f'bench_verdict,{tags},requirement=SNB-01 of_run="{host}1",outcome="{outcome}",decision="{decision}",text="rate",unit="GB/s",'
            f"measured=9.5,bound=9.243,margin_percent={margin} {at}",
            f'bench_run,{tags},profile=p,run={host}1 started_ns={at}i,duration_s=90.0,outcome="{outcome}",word="{word}"'
            f"{advice.get(host, '')} {at}",
        ]
    # After its PASS, a run of `killed` broke off; the only one of `left` four days ago; `going` runs; nobody expects anything of `retired`
    # any more. The control node's clock of `stepped` and `leapt` went back by an hour and more; that of `far` and `later` is two days
    # ahead. A run of `judged` is being judged; that of `stuck` was, three hours ago, when its bench was killed.
    for host, run, word, minutes in (
        ("killed", "k1", "PASS", 30 * 60), ("killed", "k2", "BEGUN", 10 * 60), ("going", "g1", "FAIL", 29 * 60),
        ("going", "g2", "BEGUN", 60),
        ("stepped", "p0", "PASS", -30), ("stepped", "p1", "PASS", -60), ("calm", "calm0", "FAIL", 8), ("calm", "calm2", "BEGUN", 2),
        ("a", "a1", "BEGUN", 25 * 60), ("c", "c1", "BEGUN", 20 * 24 * 60 + 60),
        ("ancient", "o1", "FAIL", 40 * 24 * 60), ("left", "l1", "BEGUN", 4 * 24 * 60), ("leapt", "e1", "BEGUN", 20),
        ("leapt", "e2", "PASS", -60),
        ("far", "f0", "PASS", 18 * 24 * 60), ("far", "f1", "PASS", -2 * 24 * 60), ("stepped", "p2", "FAIL", 30),
        ("later", "n1", "PASS", -2 * 24 * 60), ("tried", "w1", "REHEARSAL FAILED", 10 * 60),
        ("judged", "j1", "BEGUN", 20), ("judged", "j1", "JUDGING", 5), ("judged", "j0", "PASS", -30),
        ("stuck", "v1", "BEGUN", 190), ("stuck", "v1", "JUDGING", 180),
    ):  # fmt: skip
        outcome = "INADMISSIBLE" if word == "REHEARSAL FAILED" else word
        more = "" if word in ("BEGUN", "JUDGING") else f',started_ns=1i,duration_s=90.0,outcome="{outcome}"'
        found.append(
            f'bench_run,host={host},scenario=s,model=m,profile=p,run={run} word="{word}"{more} {now_ns - minutes * 60 * SECOND_NS}'
        )
    for minutes, more in (
        (19 * 24 * 60, ',run=x1,scenario=s word="PASS",outcome="PASS"'),
        (40 * 60, ' word="RETIRED"'),
    ):
        found.append(f"bench_run,host=retired{more} {now_ns - minutes * 60 * SECOND_NS}")
    # SNB-02 of a was measured by an earlier run alone.
    of_a = "bench_verdict,host=a,scenario=s,model=m,firmware=f,requirement=SNB-02"
    for of_run, minutes, more in (
        ("a0", 21 * 24 * 60, 'outcome="PASS",decision="met",measured=7.5,bound=5,margin_percent=50'),
        ("a1", 24 * 60, 'outcome="FAIL",decision="not measured",bound=6'),
    ):
        at = now_ns - minutes * 60 * SECOND_NS
        found.append(f'{of_a} of_run="{of_run}",text="rest",unit="GB/s",{more} {at}')
    found.append(
        f'bench_verdict,host=a,scenario=s,model=m,firmware=f,requirement=SNB-01 of_run="a01",outcome="FAIL",margin_percent=-5,'
        f'decision="missed" {now_ns - 30 * HOUR_S * SECOND_NS}'
    )
    for run, rate, backlog, share in (("a1", 2.5e9, 1e9, 0.25), ("c1", 4e9, 0, 0.125)):
        for nth, second in enumerate((0, 1, 2, 200)):  # the last one comes after the range
            later = nth == 3
            fields = (
                f"system_fraction={1 if later else share},busy_fraction=0.5,stored_bytes_per_s={rate * (1 + nth) / 2},"
                f"backlog_bytes={9e9 if later else backlog * nth / 2}"
            )
            found.append(f'aligned_run,host=h,run={run} load="record 1",{fields} {EPOCH_NS + second * SECOND_NS}')
    return "\n".join(found) + "\n"


Json = dict[str, Any]


def tile(text: str, colour: str, name: str | None = None) -> Json:
    return {"text": text, "colour": colour} | ({} if name is None else {"name": name})


GREY = "#808080"
NOTHING = tile("-", GREY)
UNJUDGED = "no verdict for 36 h"


@dataclass(frozen=True)
class Expected:
    """States what a panel of a board shows of one candidate."""

    board: Dashboard
    title: str
    candidate: str
    rows: list[list[Any]]
    shown: list[Json]


def _tiles() -> tuple[Expected, ...]:
    found = []

    def live(title: str, **by_candidate: tuple[list[list[Any]], Json]) -> None:
        found.extend(Expected(RUN_LIVE, title, who, rows, [one]) for who, (rows, one) in by_candidate.items())

    def health(title: str, busy: tuple[list[Any], Json], calm: tuple[list[Any], Json]) -> None:
        """A drive that was read 35 h ago has values; one that was read 37 h ago and a candidate without drives have none."""
        found.extend((
            Expected(DRIVE_HEALTH, title, "busy", [busy[0]], [busy[1]]),
            *(Expected(DRIVE_HEALTH, title, who, [calm[0]], [calm[1]]) for who in ("calm", "h35")),
            *(Expected(DRIVE_HEALTH, title, who, [], [tile("not read for 36 h", GREY, "")]) for who in ("h37", BARE)),
        ))  # fmt: skip

    none: list[list[Any]] = []
    live("Runs now", busy=([[0.25]], tile("250 ms", "blue", "r2")), calm=([[0.1]], tile("100 ms", "blue", "c1")),
         silent=(none, tile("nothing", GREY, "")),
         gone=(none, tile("nothing", GREY, "")), **{BARE: ([[20]], tile("20 s", "blue", "b1"))})  # fmt: skip
    live("Phase", busy=([["record 1 of 6"]], tile("record 1 of 6", GREY)), calm=([["precondition"]], tile("precondition", GREY)),
         silent=(none, NOTHING), gone=(none, NOTHING))  # fmt: skip
    live(
        "Left of this load",
        busy=([[60]], tile("1 minute", "blue")),
        calm=(none, NOTHING),
        silent=(none, NOTHING),
        gone=(none, NOTHING),
    )
    live("Lost superchunks", busy=([[0]], tile("0", "blue")), calm=([[0]], tile("0", "blue")), silent=([[5]], tile("5", "red")),
         gone=(none, NOTHING), **{BARE: (none, NOTHING)})  # fmt: skip
    live("Buffer in use", busy=([[0.5]], tile("50%", "yellow")), calm=([[0]], tile("0%", "green")), silent=(none, NOTHING),
         two=([[0.9]], tile("90%", "red")),
         gone=(none, NOTHING), **{BARE: (none, NOTHING)})  # fmt: skip
    live("Fullest buffer", busy=([[0.9991]], tile("100%", "red")), calm=([[0]], tile("0%", "blue")), silent=([[1]], tile("100%", "red")),
         gone=(none, NOTHING), **{BARE: (none, NOTHING)})  # fmt: skip
    live(
        "Margin to warning",
        busy=([["nvme1n1", "Composite", 2]], tile("2 K", "orange", "nvme1n1 Composite")),
        calm=([["nvme0n1", "Composite", 40]], tile("40 K", "green", "nvme0n1 Composite")),
        silent=(none, tile("no value", GREY, "")),
        gone=(none, tile("no value", GREY, "")),
        **{BARE: (none, tile("no value", GREY, ""))},
    )
    live("Telemetry's age", busy=([[4]], tile("4.0 s", "green")), calm=([[0.1]], tile("100.0 ms", "green")),
         silent=(none, tile("SILENT", "red")), gone=(none, tile("SILENT", "red")),
         **{BARE: ([[20]], tile("20.0 s", "yellow"))})  # fmt: skip
    live("Outcome", a=([["a1", "FAIL"]], tile("FAIL", "red", "a1")), **{
        who: ([[f"{who}1", "PASS"]], tile("PASS", "green", f"{who}1")) for who in ("calm", "h35")}, **{
        who: (none, tile(UNJUDGED, GREY, "")) for who in ("busy", "h37", "c", "fast")})  # fmt: skip
    found.append(
        Expected(
            RUN_LIVE,
            "Sensors that the BMC complains of",
            "busy",
            [[0], [2]],
            [tile("0", "blue", "Fan1"), tile("2", "red", "Inlet")],
        )
    )

    for board, title, worst, value, text, colour in (
        (RUN_LIVE, "Margin to warning", ("nvme17n1", "Composite"), 17, "17 K", "green"),
        (DRIVE_HEALTH, "Margin to warning", ("nvme17n1", "S17"), 17, "17 K", "green"),
        (DRIVE_HEALTH, "Critical warning", ("nvme9n1", "S9"), 1, "1", "red"),
        (DRIVE_HEALTH, "Most media errors", ("nvme10n1", "S10"), 3, "3", "red"),
        (DRIVE_HEALTH, "Most worn", ("nvme19n1", "S19"), 23, "23%", "green"),
        (DRIVE_HEALTH, "Least spare", ("nvme13n1", "S13"), 77, "77%", "green"),
        (DRIVE_HEALTH, "Time above critical", ("nvme21n1", "S21"), 2, "2 min", "orange"),
    ):
        found.append(Expected(board, title, "large", [[*worst, value]], [tile(text, colour, " ".join(worst))]))
    first, of_calm = ["nvme2n1", "S2"], ["nvme0n1", "S0"]
    health(
        "Critical warning",
        ([*first, 1], tile("1", "red", "nvme2n1 S2")),
        ([*of_calm, 0], tile("0", "green", "nvme0n1 S0")),
    )
    health(
        "Most media errors",
        ([*first, 7], tile("7", "red", "nvme2n1 S2")),
        ([*of_calm, 0], tile("0", "green", "nvme0n1 S0")),
    )
    health("Most worn", (["nvme1n1", "S1", 93], tile("93%", "yellow", "nvme1n1 S1")),
           ([*of_calm, 0], tile("0%", "green", "nvme0n1 S0")))  # fmt: skip
    health(
        "Least spare",
        ([*first, 4], tile("4%", "red", "nvme2n1 S2")),
        ([*of_calm, 100], tile("100%", "green", "nvme0n1 S0")),
    )
    health("Margin to warning", (["nvme1n1", "S1", 2], tile("2 K", "orange", "nvme1n1 S1")),
           ([*of_calm, 40], tile("40 K", "green", "nvme0n1 S0")))  # fmt: skip
    health("Time above critical", ([*first, 3], tile("3 min", "orange", "nvme2n1 S2")),
           ([*of_calm, 0], tile("0 min", "green", "nvme0n1 S0")))  # fmt: skip
    link = [tile("100%", "blue", "nvme0n1"), tile("50%", "red", "nvme1n1")]
    found.append(Expected(DRIVE_HEALTH, "PCIe link in use", "busy", [[1], [0.5]], link))

    found += [
        Expected(FLEET, "Runs in this range", "", [[16]], [tile("16", "blue")]),
        Expected(
            FLEET,
            "Candidates by newest outcome",
            "",
            [[1]],
            [
                tile("1", "green", "PASS"),
                tile("2", "red", "FAIL"),
                tile("1", "purple", "ERROR"),
                tile("1", "yellow", "INADMISSIBLE"),
                tile("1", "yellow", "REHEARSAL"),
                tile("1", "red", "REHEARSAL FAILED"),
                tile("4", "blue", "not ended"),
                tile("2", "blue", "being judged"),
                tile("4", GREY, "none"),
            ],
        ),
        Expected(FLEET, "Smallest newest margin", "", [["a", "SNB-01", -3.5]], [tile("-3.5%", "red", "a SNB-01")]),
        Expected(COMPARE, "Outcomes", "", [["FAIL"]], [tile("FAIL", "red", "A"), tile("PASS", GREY, "B")]),
        Expected(
            COMPARE,
            "Mean stored rate",
            "",
            [[2.5e9]],
            [tile("2.50 GB/s", "blue", "A"), tile("4 GB/s", "blue", "B")],
        ),
        Expected(COMPARE, "Largest backlog", "", [[1e9]], [tile("1 GB", "blue", "A"), tile("500 MB", "blue", "B")]),
        Expected(
            COMPARE,
            "Mean CPU in the kernel",
            "",
            [[0.25]],
            [tile("25%", "blue", "A"), tile("12.5%", "blue", "B")],
        ),
    ]
    found += [
        Expected(
            board,
            title,
            "mixed",
            [[*whose, value]],
            [tile(text, colour, *([" ".join(whose)] if whose else ([name] if name else [])))],
        )
        for board, title, whose, value, text, colour, name in (
            (RUN_LIVE, "Runs now", [], 1, "1 s", "blue", "m1"),
            (RUN_LIVE, "Left of this load", [], 60, "1 minute", "blue", ""),
            (RUN_LIVE, "Lost superchunks", [], 3, "3", "red", ""),
            (RUN_LIVE, "Buffer in use", [], 0.6, "60%", "yellow", ""),
            (RUN_LIVE, "Fullest buffer", [], 0.6, "60%", "yellow", ""),
            (RUN_LIVE, "Margin to warning", ["nvme0n1", "Composite"], 25, "25 K", "green", ""),
            (RUN_LIVE, "Telemetry's age", [], 1, "1.0 s", "green", ""),
            (RUN_LIVE, "Sensors that the BMC complains of", [], 2, "2", "red", "A"),
            (DRIVE_HEALTH, "Critical warning", ["nvme0n1", "S0"], 0, "0", "green", ""),
            (DRIVE_HEALTH, "Most media errors", ["nvme0n1", "S0"], 0, "0", "green", ""),
            (DRIVE_HEALTH, "Most worn", ["nvme0n1", "S0"], 30, "30%", "green", ""),
            (DRIVE_HEALTH, "Least spare", ["nvme0n1", "S0"], 60, "60%", "green", ""),
            (DRIVE_HEALTH, "Time above critical", ["nvme0n1", "S0"], 0, "0 min", "green", ""),
            (DRIVE_HEALTH, "Margin to warning", ["nvme0n1", "S0"], 25, "25 K", "green", ""),
            (DRIVE_HEALTH, "PCIe link in use", [], 1, "100%", "blue", "nvme0n1"),
        )
    ]
    return tuple(found)


TILES = _tiles()


@dataclass(frozen=True)
class Ago:
    """A moment so many minutes ago, which is shown as such."""

    minutes: int


Cell = str | tuple[str, str] | Ago  # a text, or one with its colour


@dataclass(frozen=True)
class ExpectedTable:
    """The rows of a table from above, as they are sorted."""

    board: Dashboard
    title: str
    candidate: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


CLEAR = "#00000000"  # transparent
PASS, FAIL, REHEARSAL = ("PASS", "green"), ("FAIL", "red"), ("REHEARSAL", "yellow")
ERROR, INADMISSIBLE, TRIED = ("ERROR", "purple"), ("INADMISSIBLE", "yellow"), ("REHEARSAL FAILED", "red")
PASSED_THEN, MET = ("PASS", CLEAR), ("met", CLEAR)  # in a record of the past nothing is green
MISSED = ("missed", "red")
ASKED = ("Requirement", "It asks", "Outcome", "Decision", "Measured", "Bound", "Unit", "Margin")
WHOSE = ("Requirement", "Candidate", "Judged", "Model", "Firmware", *ASKED[1:])
ADVICE = ("Likely cause", "Next")
OF_LAST = ("s", "p", "m")
NOW = "a few seconds ago"
EMPTY = ("-", CLEAR)
DRIVES = ("Drive", "Serial", "Model", "Self-test", "Critical warning", "Worn", "Spare", "Media errors", "Error log", "Reallocated",
          "Temperature", "Written", "Powered on", "Unsafe shutdowns")  # fmt: skip
NO_FIELDS: tuple[Cell, ...] = ("", EMPTY, "", "", "", "")
GOOD, BAD = CLEAR, "red"
OK, WRONG = ("passed", GOOD), ("FAILED", BAD)
OLD = (UNJUDGED, GREY)
NOT_ENDED, RUNS, BROKEN, IDLE = ("not ended", "blue"), ("runs", "blue"), ("SILENT", "orange"), ("-", CLEAR)
JUDGED, JUDGING = ("being judged", "blue"), ("JUDGING", "blue")
FLEETS = ("host", "Outcome", "Now", "Judged", "Last, however old", *ADVICE, "Clock ahead")
SHOWS_GB = ("9.50", "9.24", "GB/s")
TABLES = (
    ExpectedTable(FLEET, "Runs now", "", ("host", "run", "Answered"), (
        ("busy", "r2", NOW), ("calm", "c1", NOW), ("fast", "q1", "in 2 hours"), ("going", "g2", NOW), (BARE, "b1", NOW),
        ("mixed", "m1", NOW))),
    # Without any verdict of 36 h, and without any of the future.
    ExpectedTable(FLEET, "Newest run of each candidate", "c", FLEETS[:-1],
                  (("c", OLD, IDLE, "20 days ago", ("PASS", GREY), "-", "-"),)),
    ExpectedTable(FLEET, "Newest run of each candidate", "", FLEETS, (
        ("c", OLD, IDLE, "20 days ago", ("PASS", GREY), "-", "-", ""), ("retired", OLD, IDLE, "19 days ago", ("PASS", GREY), "-", "-", ""),
        ("far", OLD, IDLE, "18 days ago", ("PASS", GREY), "-", "-", ""),
        ("h37", OLD, IDLE, "2 days ago", ("PASS", GREY), "-", "-", ""), ("h35", PASS, IDLE, "a day ago", ("PASS", GREY), "-", "-", ""),
        ("killed", NOT_ENDED, BROKEN, "a day ago", ("PASS", GREY), "-", "-", ""),
        ("going", NOT_ENDED, RUNS, "a day ago", ("FAIL", GREY), "-", "-", ""),
        ("a", FAIL, IDLE, "a day ago", ("FAIL", GREY), CAUSE, STEP, ""),
        ("b", REHEARSAL, IDLE, "20 hours ago", ("REHEARSAL", GREY), "-", STEP, ""),
        ("doubtful", INADMISSIBLE, IDLE, "12 hours ago", ("INADMISSIBLE", GREY), "-", "-", ""),
        ("faulty", ERROR, IDLE, "11 hours ago", ("ERROR", GREY), "-", "-", ""),
        ("tried", TRIED, IDLE, "10 hours ago", ("REHEARSAL FAILED", GREY), "-", "-", ""),
        ("stepped", FAIL, IDLE, "30 minutes ago", ("FAIL", GREY), "-", "-", "in an hour"),
        ("calm", NOT_ENDED, RUNS, "6 minutes ago", ("PASS", GREY), "-", PASSED, ""),
        ("fast", OLD, RUNS, "", ("", GREY), "-", "-", "in an hour"),
        ("judged", JUDGED, JUDGING, "", ("", GREY), "-", "-", "in 30 minutes"),
        ("leapt", NOT_ENDED, BROKEN, "", ("", GREY), "-", "-", "in an hour"), ("busy", OLD, RUNS, "", ("", GREY), "-", "-", ""),
        (BARE, OLD, RUNS, "", ("", GREY), "-", "-", ""), ("mixed", OLD, RUNS, "", ("", GREY), "-", "-", ""),
        ("stuck", JUDGED, BROKEN, "", ("", GREY), "-", "-", ""), ("left", OLD, IDLE, "", ("", GREY), "-", "-", ""))),
    ExpectedTable(RUN_LIVE, "Why, and what to do next", "calm", ("run", "Judged", *ADVICE), (("calm1", "6 minutes ago", "-", PASSED),)),
    ExpectedTable(RUN_LIVE, "Why, and what to do next", "busy", (), ()),
    ExpectedTable(RUN_LIVE, "Why, and what to do next", "h35", (), ()),
    ExpectedTable(RUN_LIVE, "Requirements of runs judged in this range", "h35", (), ()),
    ExpectedTable(FLEET, "Last runs", "", ("Judged", "host", "Scenario", "Profile", "Model", "Outcome", "Took", "run"), (
        (Ago(6), "calm", *OF_LAST, PASSED_THEN, "1 minute", "calm1"), (Ago(8), "calm", *OF_LAST, FAIL, "1 minute", "calm0"),
        (Ago(30), "stepped", *OF_LAST, FAIL, "1 minute", "p2"),
        (Ago(10 * 60), "tried", *OF_LAST, TRIED, "1 minute", "w1"), (Ago(11 * 60), "faulty", *OF_LAST, ERROR, "1 minute", "faulty1"),
        (Ago(12 * 60), "doubtful", *OF_LAST, INADMISSIBLE, "1 minute", "doubtful1"),
        (Ago(20 * 60), "b", *OF_LAST, REHEARSAL, "1 minute", "b1"),
        (Ago(24 * 60), "a", *OF_LAST, FAIL, "1 minute", "a1"),
        (Ago(29 * 60), "going", *OF_LAST, FAIL, "1 minute", "g1"), (Ago(30 * 60), "killed", *OF_LAST, PASSED_THEN, "1 minute", "k1"),
        (Ago(35 * 60), "h35", *OF_LAST, PASSED_THEN, "1 minute", "h351"),
        (Ago(37 * 60), "h37", *OF_LAST, PASSED_THEN, "1 minute", "h371"),
        (Ago(18 * 24 * 60), "far", *OF_LAST, PASSED_THEN, "1 minute", "f0"),
        (Ago(19 * 24 * 60), "retired", "s", "", "", PASSED_THEN, "", "x1"),
        (Ago(20 * 24 * 60), "c", *OF_LAST, PASSED_THEN, "1 minute", "c1"),
        (Ago(21 * 24 * 60), "b", *OF_LAST, FAIL, "1 minute", "b0"))),
    ExpectedTable(FLEET, "Newest value of each requirement", "", WHOSE, (
        ("SNB-01", "b", "20 hours ago", "m", "f", "rate", ("INADMISSIBLE", "yellow"), MISSED, *SHOWS_GB, ("-90%", BAD)),
        ("SNB-01", "faulty", "11 hours ago", "m", "f", "rate", ERROR, MISSED, *SHOWS_GB, ("-70%", BAD)),
        ("SNB-01", "h37", "2 days ago", "m", "f", "rate", PASSED_THEN, MISSED, *SHOWS_GB, ("-60%", BAD)),
        ("SNB-01", "a", "a day ago", "m", "f", "rate", FAIL, MISSED, *SHOWS_GB, ("-3.50%", BAD)),
        ("SNB-01", "doubtful", "12 hours ago", "m", "f", "rate", INADMISSIBLE, ("undecided", "yellow"), *SHOWS_GB, ("-1.50%", BAD)),
        ("SNB-02", "a", "a day ago", "m", "f", "rest", FAIL, ("not measured", GREY), "", "6", "GB/s", EMPTY),
        ("SNB-01", "c", "20 days ago", "m", "f", "rate", PASSED_THEN, MET, *SHOWS_GB, ("12%", GOOD)),
        ("SNB-01", "h35", "a day ago", "m", "f", "rate", PASSED_THEN, MET, *SHOWS_GB, ("20%", GOOD)),
        ("SNB-01", "calm", "6 minutes ago", "m", "f", "rate", PASSED_THEN, MET, *SHOWS_GB, ("30%", GOOD)))),
    ExpectedTable(FLEET, "The agents' accounts", "",
                  ("Candidate", "run", "Agent", "Collected", "Spooled", "Delivered", "Rejected", "Undelivered", "Unspooled"),
                  (("silent", "s1", "bmc", "60", "100", "97", ("1", BAD), "0", "0"),
                   ("busy", "r2", "", "105", "100", "97", ("3", BAD), "0", "5"),
                   ("mixed", "m1", "", "9", "9", "9", ("0", GOOD), "0", "0"),
                   ("flow", "f1", "", "", "", "", ("7", BAD), "200", "4"), ("flow", "f1", "bmc", "", "", "", EMPTY, "1", ""),
                   ("calm", "c1", "", "97", "100", "97", ("0", GOOD), "0", "0"))),
    ExpectedTable(DRIVE_HEALTH, "Newest values of each drive", "busy", DRIVES, (
        ("nvme0n1", "S0", "m", OK, ("0", GOOD), ("10%", GOOD), ("90%", GOOD), ("0", GOOD), *NO_FIELDS),
        ("nvme1n1", "S1", "m", OK, ("0", GOOD), ("93%", "yellow"), ("50%", GOOD), ("0", GOOD), *NO_FIELDS),
        ("nvme2n1", "S2", "m", WRONG, ("1", BAD), ("20%", GOOD), ("4%", BAD), ("7", BAD), *NO_FIELDS))),
    ExpectedTable(DRIVE_HEALTH, "Newest values of each drive", "mixed", DRIVES, (
        ("nvme0n1", "S0", "m", OK, ("0", GOOD), ("30%", GOOD), ("60%", GOOD), ("0", GOOD), "1", ("0", GOOD), "50 °C",
         "2 GB", "1.71 days", "4"),)),
    ExpectedTable(DRIVE_HEALTH, "Newest values of each drive", BARE, (), ()),
    ExpectedTable(RUN_LIVE, "Requirements of runs judged in this range", "calm", (*ASKED, "run"),
                  (("SNB-01", "rate", PASSED_THEN, MET, *SHOWS_GB, "30%", "calm1"),)),
    ExpectedTable(COMPARE, "Requirements of run A", "", ASKED, (
        ("SNB-01", "rate", FAIL, MISSED, *SHOWS_GB, "-3.50%"), ("SNB-02", "rest", FAIL, ("not measured", GREY), "", "6", "GB/s", ""))),
    ExpectedTable(COMPARE, "Requirements of run B", "", ASKED, (("SNB-01", "rate", PASSED_THEN, MET, *SHOWS_GB, "12%"),)),
)  # fmt: skip
LASTS_MS = {RUN_LIVE.uid: 15 * 60_000, DRIVE_HEALTH.uid: 7 * DAY_S * 1000, FLEET.uid: 30 * DAY_S * 1000}


def range_of(board: Dashboard, time_from: str, now_ms: int) -> Range:
    """The range with which the board opens, or the panel's own."""
    if board is COMPARE:
        return Range(EPOCH_NS // 10**6 - 10_000, EPOCH_NS // 10**6 + 120_000)
    own = {"": LASTS_MS[board.uid], "1m": 60_000, "36h": 36 * HOUR_S * 1000}
    return Range(now_ms - own[time_from], now_ms)


def choices_of(candidate: str) -> dict[str, Choice]:
    """The choices of every board's variables: one candidate, or All of them; run a1 against c1."""
    every = dict.fromkeys(("run", "device", "scenario", "model", "requirement"), Every.VALUE)
    return {**every, "host": candidate or Every.VALUE, "run_a": "a1", "run_b": "c1", "load": "record 1"}


@dataclass(frozen=True)
class ExpectedLine:
    """A line of a graph: its name, its colour where the board chooses one, and the figures of its legend."""

    name: str
    colour: str
    dashed: bool
    figures: tuple[str, ...]


# Two samples of the buffer are 120 s apart. Each drive's temperature stands against the limit that it states itself.
LINES = (
    (RUN_LIVE, "Backlog against the transient buffer", "busy",
     (ExpectedLine("backlog r2", "yellow", False, ("5 kB", "9.99 kB")),
      ExpectedLine("transient buffer r2", "red", True, ("10 kB", "10 kB")))),
    (RUN_LIVE, "Drive temperature against its own limits", "calm",
     (ExpectedLine("nvme0n1 Composite", "green", False, ("40 °C", "40 °C")),
      ExpectedLine("nvme0n1 Composite warning", "yellow", True, ("80 °C", "80 °C")))),
    (RUN_LIVE, "BUSY and lost superchunks", "silent", (ExpectedLine("lost s1", "red", False, ("5", "5")),)),
    (COMPARE, "Stored rate", "",
     (ExpectedLine("A", "blue", False, ("2.50 GB/s", "3.75 GB/s")), ExpectedLine("B", "orange", False, ("4 GB/s", "6 GB/s")))),
)  # fmt: skip
# A candidate's bars: minutes before now, and the word and colour that begin then; no word: the bar ends.
LANES = {
    "a": ((25 * 60, NOT_ENDED), (24 * 60, FAIL)),
    "b": ((21 * 24 * 60, FAIL), (21 * 24 * 60 - 36 * 60, None), (20 * 60, REHEARSAL)),
    "c": ((20 * 24 * 60 + 60, NOT_ENDED), (20 * 24 * 60, PASS), (20 * 24 * 60 - 36 * 60, None)),
    "calm": ((8, FAIL), (6, PASS), (2, NOT_ENDED)),
    "h35": ((35 * 60, PASS),),
    "h37": ((37 * 60, PASS), (60, None)),
    "going": ((29 * 60, FAIL), (60, NOT_ENDED)),
    "killed": ((30 * 60, PASS), (10 * 60, NOT_ENDED)),
    "retired": ((19 * 24 * 60, PASS), (19 * 24 * 60 - 36 * 60, None), (40 * 60, ("retired", GREY)), (4 * 60, None)),
    "stepped": ((30, FAIL),),
    "far": ((18 * 24 * 60, PASS), (18 * 24 * 60 - 36 * 60, None)),
    "left": ((4 * 24 * 60, NOT_ENDED), (4 * 24 * 60 - 36 * 60, None)),
    "leapt": ((20, NOT_ENDED),),
    "faulty": ((11 * 60, ERROR),),
    "doubtful": ((12 * 60, INADMISSIBLE),),
    "tried": ((10 * 60, TRIED),),
    "judged": ((20, NOT_ENDED), (5, JUDGED)),
    "stuck": ((190, NOT_ENDED), (180, JUDGED)),
}
