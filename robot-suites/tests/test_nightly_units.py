"""The units that a laboratory copies: a night begins once every day, and a mail is never an earlier night's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.line_protocol import parse_line
from daq_bench.bench_model.documents.struct import checked
from daq_bench.bench_model.nights.outcome import document
from daq_bench.bench_model.nights.run_history import history_of, read_all
from daq_bench.bench_model.nights.trend import trend_of
from daq_bench.bench_report.trend.view import span_words
from daq_bench.rig.base.bundle import Bundle, to_json
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli import nights, parser
from daq_bench.rig.nightly import housekeeping, overdue
from daq_bench.rig.nightly.baselines import Baselines
from daq_bench.rig.nightly.night import Nightly
from daq_bench.rig.telemetry import influx_server
from daq_bench.rig.telemetry.influx_server import LocalInflux, free_port

UNITS = Layout().repository / "docs" / "nightly"
ZONES = (
    "Europe/Zurich", "Europe/London", "America/Chicago", "America/Santiago", "America/Havana", "Atlantic/Azores", "Asia/Beirut",
    "Asia/Jerusalem", "Africa/Cairo", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Auckland", "Asia/Tokyo", "America/Asuncion",
)  # fmt: skip
FAKES = {
    "systemctl": 'echo "$BEGUN"',
    "journalctl": 'echo "journal $*"',
    "mail": 'echo "subject: $2"; echo "to: $3"; cat',
    "hostname": "echo control",
}


def times_of(day: date, hour: int, minute: int, zone: ZoneInfo) -> int:
    """How often a day of the zone has that time: the moments, looked for in UTC, whose local time it is."""
    noon = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
    moments = (noon + timedelta(minutes=15 * quarter) for quarter in range(-60, 61))
    wanted = (day, hour, minute)
    return sum(
        (local.date(), local.hour, local.minute) == wanted for one in moments for local in [one.astimezone(zone)]
    )


def clock_changes(zone: ZoneInfo, year: int) -> list[date]:
    days = [date(year, 1, 1) + timedelta(days=number) for number in range(365)]
    noons = [datetime(one.year, one.month, one.day, 12, tzinfo=zone).utcoffset() for one in days]
    changed = [days[place] for place in range(1, len(days)) if noons[place] != noons[place - 1]]
    return sorted({one + timedelta(days=more) for one in changed for more in (-1, 0)})


def test_the_timers_time_is_there_once_every_day() -> None:
    text = (UNITS / "daq-bench-nightly.timer").read_text(encoding="utf-8")
    (found,) = re.findall(r"^OnCalendar=\*-\*-\* (\d\d):(\d\d):00$", text, re.MULTILINE)
    hour, minute = map(int, found)
    counts = {
        (name, str(day)): times_of(day, hour, minute, ZoneInfo(name))
        for name in ZONES
        for day in clock_changes(ZoneInfo(name), 2027)
    }
    assert len(counts) > 30
    assert {key for key, count in counts.items() if count != 1} == set()


def test_two_o_clock_is_not_there_every_day() -> None:
    """Adversary: what the timer had. The EU skips 02:00 on the last Sunday of March, and has it twice on that of October."""
    zurich = ZoneInfo("Europe/Zurich")
    assert [times_of(day, 2, 0, zurich) for day in (date(2027, 3, 28), date(2027, 10, 31), date(2027, 6, 1))] == [
        0,
        2,
        1,
    ]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (
            "2026-10-24 12:00:00 UTC",
            ["10-24 20:30", "10-25 21:30", "10-26 21:30"],
        ),  # back to winter time in the night of the 25th
        (
            "2027-03-27 12:00:00 UTC",
            ["03-27 21:30", "03-28 20:30", "03-29 20:30"],
        ),  # ahead to summer time in that of the 28th
    ],
    ids=["back", "ahead"],
)
def test_systemds_own_calendar_begins_one_night_a_day_where_clocks_change(base: str, expected: list[str]) -> None:
    """systemd is the outside source; at 02:00, as the timer once had it, it begins no night on 2027-03-28."""

    def begins(time_of_day: str) -> list[str]:
        argv = ["systemd-analyze", "calendar", "--iterations=3", f"--base-time={base}", f"*-*-* {time_of_day}"]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=True, env={**os.environ, "TZ": "Europe/Zurich", "LC_ALL": "C"}
        )
        return re.findall(r"\(in UTC\): \w+ \d{4}-(\d\d-\d\d \d\d:\d\d):00 UTC", done.stdout)

    text = (UNITS / "daq-bench-nightly.timer").read_text(encoding="utf-8")
    (found,) = re.findall(r"^OnCalendar=\*-\*-\* (\S+)$", text, re.MULTILINE)
    assert begins(found) == expected
    if base.startswith("2027"):
        assert not any(one.startswith("03-28") for one in begins("02:00:00"))


# Local times of Zurich: 02:15 and 02:45 come twice on 2026-10-25, and 02:15 is not there on 2027-03-28.
OF_CHANGES = [
    datetime(2026, 10, 25, 0, 15, tzinfo=UTC), datetime(2026, 10, 25, 0, 45, tzinfo=UTC), datetime(2026, 10, 25, 1, 15, tzinfo=UTC),
    datetime(2026, 10, 25, 1, 45, tzinfo=UTC), datetime(2027, 3, 28, 0, 45, tzinfo=UTC), datetime(2027, 3, 28, 1, 15, tzinfo=UTC),
]  # fmt: skip


@pytest.fixture
def zurich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Zurich")
        time.tzset()
        assert (
            time.localtime(OF_CHANGES[0].timestamp())[3:6]
            == time.localtime(OF_CHANGES[2].timestamp())[3:6]
            == (2, 15, 0)
        )
        yield
    time.tzset()


def test_runs_of_a_night_of_a_clock_change_have_names_order_and_times_of_their_own(
    tmp_path: Path, zurich: None
) -> None:
    made = [Bundle.create(tmp_path, "server-a", "", "snb-100s", now=lambda one=one: one) for one in OF_CHANGES]
    assert sorted({one.id for one in made}) == [one.id for one in made]
    assert (tmp_path / "latest").resolve() == made[-1].path
    for bundle, moment in zip(made, OF_CHANGES, strict=True):
        bundle.event("phase", "record", "begins")
        (event,) = bundle.events()
        assert event.time == moment and event.time_utc.endswith("Z")
        assert (
            parse_line(bundle.workload_file.read_text(encoding="utf-8").strip()).time_ns
            == int(moment.timestamp()) * 10**9
        )


def test_a_history_over_clock_changes_is_in_order_with_true_days_between(tmp_path: Path, zurich: None) -> None:
    plans = [NightPlan(number, started=moment) for number, moment in enumerate(OF_CHANGES)]
    for plan in reversed(plans):
        write_night(tmp_path, plan)
    nights, broken = read_all([tmp_path])
    history = history_of(nights, broken, "server-a")
    assert [night.started for night in history.nights] == OF_CHANGES and history.notes == ()
    assert Baselines(tmp_path / "nightly").of(history.nights[3], history.nights[:3]) == history.nights[2]
    assert "(154.0 days)" in span_words(trend_of(history))


@pytest.mark.parametrize(
    "now",
    [datetime(2026, 10, 25, 2, 30, tzinfo=UTC), datetime(2027, 3, 28, 2, 30, tzinfo=UTC)],
    ids=["back", "ahead"],
)
@pytest.mark.parametrize("hours", [23.0, 24.9, 25.1, 27.0])
def test_ages_are_hours_that_went_by_also_over_a_clock_change(
    tmp_path: Path, zurich: None, monkeypatch: pytest.MonkeyPatch, now: datetime, hours: float
) -> None:
    """A day has 25 hours, or 23: what was written so many hours ago is so old, and a night is missing after 25, by neither clock."""
    at = now.timestamp() - hours * 3600
    old, young = (tmp_path / "runs" / f"{one:%Y%m%dT%H%M%SZ}-a" for one in (datetime.fromtimestamp(at, UTC), now))
    for bundle, moment in ((old, at), (young, now.timestamp() - 1)):
        bundle.mkdir(parents=True)
        (bundle / "run.json").write_text("{}", encoding="utf-8")
        for one in (bundle / "run.json", bundle):
            os.utime(one, (moment, moment))
    nights = tmp_path / "nightly"
    begun = document([], [], "finished", "n1", (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}", None), {})
    (nights / "n1").mkdir(parents=True)
    (nights / "n1" / "nightly.json").write_text(to_json(checked(begun)), encoding="utf-8")

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls.fromtimestamp(now.timestamp(), tz)

    for module in (housekeeping, overdue):
        monkeypatch.setattr(module, "datetime", Clock)
    said: list[str] = []
    missing = overdue.overdue(nights, 25.0, said.append)
    assert bool(missing) == (hours > 25.0)
    house = housekeeping.Housekeeping(
        tmp_path / "runs", nights, housekeeping.Keeping(days=25 / 24), Baselines(nights), [], said.append
    )
    assert house.run([]) == ([old.name] if hours > 25.0 else [])
    assert said == []


@pytest.mark.parametrize("other", [{}, {"TZ": "Pacific/Apia"}], ids=["here", "elsewhere"])
@pytest.mark.parametrize(
    ("written_s", "begun", "subject"),
    [
        (-5, "before", "FAIL of tonight"),
        (-90000, "before", "DAQ storage bench: the night did not begin on control"),
        (None, "before", "DAQ storage bench: the night did not begin on control"),
        (-5, "", "DAQ storage bench: the night did not begin on control"),
        (-5, "n/a", "DAQ storage bench: the night did not begin on control"),
    ],
    ids=["tonight", "yesterday", "no night at all", "systemd says nothing", "systemd knows no time"],
)
def test_a_mail_is_never_an_earlier_nights(
    tmp_path: Path, written_s: int | None, begun: str, subject: str, other: dict[str, str]
) -> None:
    now = time.time()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, source in FAKES.items():
        (tools / name).write_text(f"#!/bin/sh\n{source}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    if written_s is not None:
        night = tmp_path / "nightly" / "20270101"
        night.mkdir(parents=True)
        (tmp_path / "nightly" / "latest").symlink_to(night)
        (night / "summary.txt").write_text("FAIL of tonight\nserver-a: FAIL\n", encoding="utf-8")
        os.utime(night / "summary.txt", (now + written_s, now + written_s))
    done = subprocess.run(
        ["sh", UNITS / "mail.sh", "ops@lab.example"], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, **other, "PATH": f"{tools}:{os.environ['PATH']}", "BEGUN": f"@{now - 3600:.0f}" if begun == "before" else begun},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"subject: {subject}", "to: ops@lab.example"]
    assert ("server-a: FAIL" in lines) == (subject == "FAIL of tonight")
    assert any(line.startswith("journal --unit=daq-bench-nightly.service") for line in lines) == ("FAIL" not in subject)
    assert done.stderr == ""


def test_the_units_call_what_is_there() -> None:
    service = (UNITS / "daq-bench-nightly.service").read_text(encoding="utf-8")
    assert "ExecStartPre=/usr/bin/make setup\n" in service
    assert "ExecStart=/usr/bin/env .venv/bin/daq-bench nightly\n" in service
    assert "OnFailure=daq-bench-nightly-mail.service\n" in service
    mail = (UNITS / "daq-bench-nightly-mail.service").read_text(encoding="utf-8")
    (script,) = re.findall(r"^ExecStart=/bin/sh (\S+) \$\{ADDRESS\}$", mail, re.MULTILINE)
    assert os.access(Layout().repository / script, os.X_OK)


def test_the_noon_timer_asks_the_command_that_there_is() -> None:
    service = (UNITS / "daq-bench-night-missing.service").read_text(encoding="utf-8")
    (words,) = re.findall(r"^ExecStart=/usr/bin/env \.venv/bin/daq-bench (.+)$", service, re.MULTILINE)
    options = parser().parse_args(words.split())
    assert options.overdue_h == 26.0
    timer = (UNITS / "daq-bench-night-missing.timer").read_text(encoding="utf-8")
    assert "OnCalendar=*-*-* 12:00:00\n" in timer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalInflux]:
    """A real one of our own, which runs."""
    local = LocalInflux(Layout().influxd, tmp_path / "influxdb")
    local.start(free_port(18086))
    yield local
    local.stop()


def shut_down_properly(local: LocalInflux) -> bool:
    return local.running_pid() is None and "Server shutdown completed" in local.log_file.read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", [None, BenchError("the plan is wrong"), KeyboardInterrupt()])
def test_a_night_of_systemd_ends_the_server_that_it_started(
    server: LocalInflux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: BaseException | None
) -> None:
    """However it ends: what is left in the unit then, systemd kills."""

    def carry_out(_: Nightly, goes_on: bool) -> int:
        if fault:
            raise fault
        return 3

    monkeypatch.setattr(Nightly, "carry_out", carry_out)
    monkeypatch.setattr(nights, "LocalInflux", lambda *_: server)
    monkeypatch.setenv("INVOCATION_ID", "5d1ba4c0")
    options = parser().parse_args(["nightly", "--output", str(tmp_path / "nights"), "--candidates", "virtual"])
    if fault:
        with pytest.raises(type(fault)):
            nights.nightly(options)
    else:
        assert nights.nightly(options) == 3
    assert shut_down_properly(server)


def test_a_server_of_somebody_else_outlives_the_night(server: LocalInflux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    server.stop_with_the_unit()  # no service of systemd
    monkeypatch.setenv("INVOCATION_ID", "5d1ba4c0")
    own = os.getpid()
    monkeypatch.setattr(
        influx_server, "group_of", lambda pid: f"0::/system.slice/{'night' if pid == own else 'session'}"
    )
    server.stop_with_the_unit()
    assert server.running_pid() is not None
    monkeypatch.undo()
    monkeypatch.setenv("INVOCATION_ID", "5d1ba4c0")
    server.stop_with_the_unit()
    assert shut_down_properly(server)
    server.stop_with_the_unit()  # and once more, where none is


def test_a_process_that_has_ended_is_in_no_group() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert influx_server.group_of(ended.pid) is None and influx_server.group_of(os.getpid())
