"""A drive's own event log (NVMe 0Dh): what is new is told once, at its age; garbage, a huge log and a storm cost only themselves."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest
from agent_helpers import fake_program, undeclared
from drive_helpers import Bench, event, event_log, with_events

from daq_bench.candidate_kit.nand_pages import OCP_GUID
from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.devices import nvme_events
from daq_bench.telemetry_agent.devices.drive_events import LATER_MS, EventLog
from daq_bench.telemetry_agent.devices.nvme_events import EVENTS_MAX, LOG_BYTES_MAX
from daq_bench.telemetry_agent.devices.vendor_pages import ocp_fields

NOW_MS = 1_800_000_000_000
OLD = event(4, NOW_MS - 10_000_000, b"FW1.0   ")
HOT = event(13, NOW_MS - 2000, bytes((7, 1)))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path, "nvme_consumer")
    monkeypatch.setenv("PATH", made.path)
    monkeypatch.setattr("daq_bench.telemetry_agent.devices.drive_events.PERIOD_S", 0.0)
    return made


def told(bench: Bench, *logs: bytes) -> tuple[list[Point], list[str]]:
    """(events, faults) of a reading of each of these logs, one after the other."""
    smart, points, faults = bench.smart(), list[Point](), list[str]()
    for log in logs:
        with_events(bench, log)
        reading = smart.read()
        faults += reading.faults
        points += [one for one in smart.parse(reading, None) if one.measurement == "nvme_event"]
    return points, faults


def test_what_is_new_is_told_once_and_the_context_is_closed(bench: Bench) -> None:
    first, second = (
        event_log(NOW_MS - 60_000, [OLD]),
        event_log(NOW_MS, [HOT, OLD]),
    )  # the newest first or last: both are
    points, faults = told(bench, first, second, second, event_log(NOW_MS, [OLD, HOT]))
    assert faults == [] and len(points) == 1 and undeclared(points[0]) == []
    assert dict(points[0].tags)["kind"] == "thermal_excursion"
    assert points[0].fields["text"] == "over temperature 7, threshold 1" and points[0].fields["events"] == 1
    asked = [call.split("--lsp=")[1][0] for call in bench.calls() if "--log-id=0xd " in call]
    assert asked == ["1", "0", "2"] * 4


def test_every_kind_that_the_specification_names_is_told_in_its_words() -> None:
    commit = b"FW1.0   FW2.0   " + bytes((3, 2, 0, 7, 0, 0))
    data = [(2, commit), (4, b"FW2.0   "), (13, bytes((3, 2))), (7, b""), (10, b""), (12, b""), (6, b"")]
    data += [(5, struct.pack("<HH", code, 0)) for code in range(1, 13)]
    quiet = [event(kind, NOW_MS, b"x" * 40) for kind in (1, 3, 11, 0xDE, 0xDF, 0x40)]
    log = event_log(NOW_MS, [*quiet, *(event(kind, NOW_MS, body, vendor=b"own") for kind, body in data)])
    found, faults = nvme_events.events(log, nvme_events.header(log[:512]))
    assert faults == [] and len(found) == len(data)
    kinds = [
        "firmware_commit",
        "power_on_reset",
        "thermal_excursion",
        "format",
        "sanitize",
        "telemetry_log",
        "namespace_change",
    ]
    kinds += [
        "pcie_correctable",
        "pcie_nonfatal",
        "pcie_fatal",
        "pcie_link",
        "pcie_link",
        "critical_warning",
        "critical_warning",
    ]
    kinds += ["unsafe_shutdown", "controller_fatal", "media_error", "controller_timeout", "hardware_error"]
    assert [one.kind for one in found] == kinds
    assert found[0].text == "firmware FW1.0 to FW2.0 in slot 2, refused with status 0x0/0x07"


@pytest.mark.parametrize("follows", [492, 512, 0])  # as the specification counts it, all of the header, not filled in
def test_the_headers_length_is_taken_as_drives_state_it(follows: int) -> None:
    log = event_log(NOW_MS, [OLD, HOT], follows)
    assert len(nvme_events.events(log, nvme_events.header(log[:512]))[0]) == 2


@pytest.mark.parametrize(
    ("made_ms", "age_s", "earlier_s"),
    [
        (NOW_MS, 0.0, LATER_MS / 1000),
        (NOW_MS + 5, 0.0, None),  # of the future: a clock was set
        (5_000, 0.0, None),  # since the drive's power-on: it lost its power and with it the time
        (NOW_MS - 3_600_000, 0.0, None),  # an hour ago, and not there a moment ago
    ],
)
def test_an_age_that_cannot_be_is_none(bench: Bench, made_ms: int, age_s: float, earlier_s: float | None) -> None:
    before = time.time_ns()
    (point,), faults = told(
        bench, event_log(NOW_MS - 9, [OLD]), event_log(NOW_MS, [OLD, event(5, made_ms, b"\x08\0\0\0")])
    )
    assert faults == [] and dict(point.tags)["kind"] == "unsafe_shutdown"
    assert before <= point.time_ns <= time.time_ns() + 10**9 and age_s == 0
    assert (point.fields["earlier_s"] == earlier_s) if earlier_s else (0 <= float(point.fields["earlier_s"]) < 30)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\0" * 512,
        b"\xff" * 512,
        event_log(NOW_MS, [OLD])[:300],
        event_log(NOW_MS, [OLD], length=100),
        event_log(NOW_MS, [OLD], length=4096),  # more than it gives
    ],
)
def test_a_log_that_could_never_be_read_is_asked_once_and_costs_itself(bench: Bench, bad: bytes) -> None:
    points, faults = told(bench, bad, bad, bad)
    assert points == [] and len(faults) == 1 and faults[0].endswith("not read again")
    assert not [one for one in bench.smart().parse(bench.smart().read(), None) if "logged_events" in one.fields]


def test_a_log_that_fails_later_is_a_fault_each_time_and_is_read_again(bench: Bench) -> None:
    good = event_log(NOW_MS, [OLD])
    points, faults = told(bench, good, b"\xff" * 512, b"\xff" * 512, event_log(NOW_MS, [OLD, HOT]))
    assert len(points) == 1 and len(faults) == 2 and "not read again" not in "".join(faults)


@pytest.mark.parametrize("cut", [12, 30, 45])
def test_events_that_are_cut_off_are_named_and_the_others_told(bench: Bench, cut: int) -> None:
    whole = event_log(NOW_MS, [HOT, OLD, OLD])
    log = whole[: len(whole) - cut]
    found, faults = nvme_events.events(log, nvme_events.header(log[:512]))
    assert found[0].kind == "thermal_excursion" and len(faults) == 1 and "3 events within the" in faults[0]


def test_an_event_with_lengths_that_contradict_ends_the_list_with_a_fault() -> None:
    for at, value in ((2, b"\0"), (20, b"\xff\xff")):  # a header shorter than one; more of the vendor than there is
        bad = bytearray(HOT)
        bad[at : at + len(value)] = value
        log = event_log(NOW_MS, [OLD, bytes(bad), OLD])
        found, faults = nvme_events.events(log, nvme_events.header(log[:512]))
        assert len(found) == 1 and "event 2 of 3 is not understood" in faults[0]


def test_a_huge_log_is_read_up_to_a_bound_and_a_storm_is_one_point_beyond_64() -> None:
    asked: list[int] = []
    logs = [
        event_log(NOW_MS, [OLD]),
        event_log(NOW_MS, [event(13, NOW_MS, bytes((n % 251, n // 251))) for n in range(60_000)]),
    ]

    def fetch(size: int, *options: str) -> bytes:
        asked.append(size)
        log = logs[min(len(asked) // 4, 1)]
        return log[:512] if size == 512 else log[512 : 512 + size]

    drive = EventLog()
    assert drive.read(fetch) is not None
    drive._asked_s = float("-inf")
    second = drive.read(fetch)
    assert second is not None and max(asked) <= LOG_BYTES_MAX
    rows = second.document["events"]
    assert len(rows) == EVENTS_MAX + 1 and rows[-1]["kind"] == "others" and rows[-1]["events"] > 20_000
    assert "of 60000 events within the" in second.faults[0]


def test_a_log_that_shifts_past_its_bound_tells_no_old_event_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Oldest first, and longer than is read: when the oldest goes, another old one comes into sight."""
    many = [event(13, NOW_MS - 9_000_000 + n, bytes((n % 251, n // 251))) for n in range(50_000)]
    monkeypatch.setattr("daq_bench.telemetry_agent.devices.drive_events.PERIOD_S", 0.0)
    drive, logs = EventLog(), [event_log(NOW_MS, many[:-1]), event_log(NOW_MS + 1, many[1:])]

    def fetch(size: int, *options: str) -> bytes:
        return logs[0][:512] if size == 512 else logs[0][512 : 512 + size]

    drive.read(fetch)
    logs.pop(0)
    second = drive.read(fetch)
    assert second is not None and second.document["events"] == []


def test_a_context_that_was_left_open_is_closed_first(bench: Bench) -> None:
    """As an agent that was killed leaves it: the log refuses to be opened until it is closed."""
    with_events(bench, event_log(NOW_MS, [OLD]))
    (bench.files / "open").write_text("")
    (bench.bin / "nvme").rename(bench.bin / "nvme.good")
    fake_program(
        bench.bin,
        "nvme",
        f"""
case "$*" in
    *--log-id=0xd*--lsp=1*) [ ! -f {bench.files}/open ] || {{ echo 'NVMe status: Command Sequence Error(0x400c)' >&2; exit 1; }} ;;
    *--log-id=0xd*--lsp=2*) rm -f {bench.files}/open ;;
esac
exec {bench.bin}/nvme.good "$@"
""",
    )
    reading = bench.smart().read()
    assert reading.faults == ()
    assert [
        one.fields["logged_events"] for one in bench.smart().parse(reading, None) if one.measurement == "smart"
    ] == [1]


def test_a_drive_without_such_a_log_is_not_asked(bench: Bench) -> None:
    bench.smart().read()
    assert "--log-id=0xd " not in (bench.files / "calls").read_text()


def test_link_retrainings_count_only_where_the_page_has_them() -> None:
    """OCP's page before version 2 reserves those bytes: their zeros count nothing."""
    page = bytearray(512)
    page[496:] = OCP_GUID.to_bytes(16, "little")
    page[192], page[160] = 4, 9
    assert "pcie_link_retrainings" not in ocp_fields(bytes(page))
    page[494] = 2
    found = ocp_fields(bytes(page))
    assert (found["pcie_link_retrainings"], found["power_loss_protection_starts"]) == (4, 9)
    page[192:200] = b"\xff" * 8
    assert "pcie_link_retrainings" not in ocp_fields(bytes(page))
