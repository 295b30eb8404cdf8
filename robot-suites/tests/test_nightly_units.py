"""The units that a laboratory copies: a night begins once every day, and a mail is never an earlier night's."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli import nights, parser
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
