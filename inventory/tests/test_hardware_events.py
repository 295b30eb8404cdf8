"""Faults of the hardware in a bundle's telemetry: counted, named in words, never zero where nobody looked."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.behaviour.attribution import Scene, attribute, is_of_drive
from daq_bench.bench_model.behaviour.hardware_events import (
    DRIVE_EVENTS,
    EVENTS_MAX,
    from_points,
    of_bundle,
)
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.bundle.telemetry_tracks import from_points as tracks_from
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.profiles.metrics import load_metrics

START_S = 1_800_000_000.0
NAMES = ("kernel_log", "edac", "pcie_errors", "pcie_link", "smart", "ipmi")
LOOKED = {name: {"name": name, "status": "ok", "detail": None} for name in NAMES}
METRICS = Path(__file__).resolve().parents[1] / "metrics.yml"


def point(measurement: str, at_s: float, tags: dict[str, str], **fields: Any) -> Point:
    return Point(measurement, tags, fields, int((START_S + at_s) * 1e9))


def message(
    at_s: float, device: str = "nvme1", kind: str = "nvme_reset", messages: Any = 1, text: str = "reset"
) -> Point:
    return point("kernel_event", at_s, {"device": device, "kind": kind}, messages=messages, text=text)


def logged(
    at_s: float, kind: str = "media_error", events: Any = 1, device: str = "nvme1n1", earlier_s: float = 5.0
) -> Point:
    return point(
        "nvme_event",
        at_s,
        {"device": device, "kind": kind},
        text="said",
        events=events,
        drive_time_ms=1,
        earlier_s=earlier_s,
    )


def counters() -> list[Point]:
    """Each counter twice, standing still."""
    found = []
    for at_s in (0.0, 60.0):
        found += [
            point("memory_errors", at_s, {"controller": "mc0", "module": "total"}, corrected=5, uncorrected=0),
            point(
                "pcie_errors",
                at_s,
                {"device": "nvme0n1", "function": "0000:3b:00.0"},
                correctable=7,
                nonfatal=0,
                fatal=0,
            ),
            point("smart", at_s, {"device": "nvme0n1", "serial": "S0"}, unsafe_shutdowns=9, logged_events=3),
            point(
                "smart_ocp",
                at_s,
                {"device": "nvme0n1", "serial": "S0"},
                pcie_link_retrainings=2,
                incomplete_shutdowns=1,
            ),
            point("pcie_link", at_s, {"device": "nvme0n1"}, bandwidth_bytes_per_s=7.877e9),
        ]
    return found


def made(*points: Point, looked: dict[str, Any] = LOOKED, start_s: float | None = START_S) -> dict[str, Any]:
    document = as_document(from_points([*counters(), *points], looked, start_s))
    assert fault_of("results/hardware_events.json", json.loads(json.dumps(document, allow_nan=False))) == ""
    return document


def test_a_quiet_machine_has_zeros_and_says_nothing() -> None:
    document = made()
    assert set(document["summary"].values()) == {0} and document["reasons"] == {} and document["sentences"] == []


def test_resets_are_told_with_their_number_and_time() -> None:
    document = made(message(12.4), message(20.0, messages=2), message(30.0, "sda", "block_io_error"))
    assert document["sentences"][0] == "nvme1: 3 resets in the kernel's log at 12.4 s (reset)"
    assert document["summary"]["nvme_resets"] == 3 and document["summary"]["kernel_messages"] == 4


def test_a_drive_that_comes_back_under_another_name_goes_on_counting() -> None:
    """NVMe counts an unsafe shutdown where a drive loses its power: pulled, or lost by its slot, it comes back as another device."""
    document = made(
        *(point("smart", at_s, {"device": "nvme3n1", "serial": "S3"}, unsafe_shutdowns=4) for at_s in (0, 30)),
        *(
            point("smart", at_s, {"device": "nvme7n1", "serial": "S3"}, unsafe_shutdowns=n)
            for at_s, n in ((60, 5), (90, 6))
        ),
    )
    assert document["summary"]["unsafe_shutdowns"] == 2
    assert document["sentences"] == ["nvme3n1: 2 unsafe shutdowns at 60.0 s"]


@pytest.mark.parametrize("first", ["sda", "sdb"])
def test_neither_of_two_drives_with_one_serial_hides_the_other(first: str) -> None:
    """A disk with two actuators, as Seagate's Exos 2X18 with SAS, is two devices of one serial."""
    second = {"sda": "sdb", "sdb": "sda"}[first]
    document = made(
        *(point("smart", at_s, {"device": first, "serial": "Z1"}, unsafe_shutdowns=4) for at_s in (0, 30, 60)),
        *(
            point("smart", at_s, {"device": second, "serial": "Z1"}, unsafe_shutdowns=8 + n)
            for n, at_s in enumerate((1, 31, 61))
        ),
    )
    assert document["summary"]["unsafe_shutdowns"] == 2
    assert document["sentences"][0].startswith(f"{second}: 2 unsafe shutdowns at 31.0 s")


def test_what_grew_is_counted_and_a_counter_that_began_anew_is_not_negative() -> None:
    document = made(
        point("memory_errors", 70, {"controller": "mc0", "module": "total"}, corrected=8, uncorrected=1),
        point("memory_errors", 70, {"controller": "mc0", "module": "dimm0"}, corrected=3, uncorrected=1),
        point("pcie_errors", 70, {"device": "nvme0n1", "function": "0000:3b:00.0"}, correctable=2, nonfatal=1, fatal=0),
        point("pcie_errors", 0, {"device": "eth0", "function": "0000:3a:00.0"}, correctable=1, nonfatal=0, fatal=0),
        point("pcie_errors", 70, {"device": "eth0", "function": "0000:3a:00.0"}, correctable=2, nonfatal=0, fatal=0),
        point("pcie_errors", 0, {"device": "eth1", "function": "0000:3a:00.0"}, correctable=1, nonfatal=0, fatal=0),
        point("pcie_errors", 70, {"device": "eth1", "function": "0000:3a:00.0"}, correctable=2, nonfatal=0, fatal=0),
        point("smart", 70, {"device": "nvme0n1", "serial": "S0"}, unsafe_shutdowns=10),
        point("pcie_link", 65, {"device": "nvme0n1"}, bandwidth_bytes_per_s=1.969e9),
        point("pcie_link", 70, {"device": "nvme0n1"}, bandwidth_bytes_per_s=7.877e9),
        point("ipmi_event", 40, {"sensor": "Fan1"}, text="Fan Fan1 lower critical", asserted=True),
        point("ipmi_event", 50, {"sensor": "Fan1"}, text="Fan Fan1 lower critical", asserted=False),
        point("smart_ocp", 70, {"device": "nvme0n1", "serial": "S0"}, pcie_link_retrainings=5, incomplete_shutdowns=1),
        logged(45.0, "thermal_excursion", events=2),
        logged(46.0, "power_on_reset"),
        logged(47.0, "media_error"),
        logged(48.0, "telemetry_log"),
        logged(49.0, "pcie_correctable"),  # the link mended it: an event, and no hardware error
    )
    assert document["summary"] == {
        "kernel_messages": 0, "nvme_resets": 0, "memory_corrected": 3, "memory_uncorrected": 1, "pcie_correctable": 3,
        "pcie_nonfatal": 1, "pcie_fatal": 0, "link_losses": 1, "unsafe_shutdowns": 1, "bmc_events": 1,
        "link_retrainings": 3, "incomplete_shutdowns": 0, "drive_resets": 1, "drive_thermal_excursions": 2,
        "drive_firmware_commits": 0, "drive_hardware_errors": 1,
    }  # fmt: skip
    assert document["sentences"][0] == "mc0: 1 uncorrected memory error at 70.0 s"


@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_looked_at_is_null_with_its_reason(name: str) -> None:
    absent = {key: one for key, one in LOOKED.items() if key != name}
    unsupported = {**LOOKED, name: {"name": name, "status": "unsupported", "detail": "none here"}}
    for looked, said in ((absent, name), (unsupported, "none here")):
        document = made(looked=looked)
        null = {key for key, value in document["summary"].items() if value is None}
        assert null and {f"hardware.{key}" for key in null} == set(document["reasons"])
        assert all(said in reason for reason in document["reasons"].values())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, "3", True])
def test_one_bad_value_costs_one_count(bad: Any) -> None:
    document = made(point("memory_errors", 70, {"controller": "mc0", "module": "total"}, corrected=bad, uncorrected=0))
    assert [key for key, value in document["summary"].items() if value is None] == ["memory_corrected"]
    document = made(logged(10.0, events=bad))
    assert [key for key, value in document["summary"].items() if value is None] == list(DRIVE_EVENTS)
    document = made(message(10.0, messages=bad))
    assert [key for key, value in document["summary"].items() if value is None] == ["kernel_messages", "nvme_resets"]


def test_a_drive_that_keeps_no_log_is_named_and_anothers_zero_proves_nothing_for_it() -> None:
    document = made(
        point("smart", 5, {"device": "nvme1n1", "serial": "S1"}, unsafe_shutdowns=1),
        point("smart", 5, {"device": "sda"}),
    )
    null = [key for key, value in document["summary"].items() if value is None]
    assert null == ["link_retrainings", "incomplete_shutdowns", *DRIVE_EVENTS]
    assert all(document["reasons"][f"hardware.{key}"].endswith(": nvme1n1") for key in null)


def test_a_storm_of_a_drives_events_is_told_and_not_taken_apart() -> None:
    document = made(logged(10.0, "others", events=500))
    assert (
        document["summary"]["drive_hardware_errors"] is None
        and "500 events" in document["reasons"]["hardware.drive_resets"]
    )
    assert document["sentences"] == ["nvme1n1: 500 further events in its own log at 10.0 s (said)"]


def test_a_log_with_holes_is_no_proof_of_silence() -> None:
    document = made(message(10.0, "none", "lost", 77))
    assert document["summary"]["kernel_messages"] is None and "77" in document["reasons"]["hardware.kernel_messages"]


def test_a_count_that_no_point_has_is_null() -> None:
    document = as_document(from_points([], LOOKED, None))
    assert document["summary"]["memory_corrected"] is None and document["summary"]["kernel_messages"] == 0


def test_a_storm_is_bounded_and_counted_whole() -> None:
    document = made(*(message(n / 10, f"nvme{n}") for n in range(EVENTS_MAX + 50)))
    assert len(document["events"]) == len(document["sentences"]) == EVENTS_MAX and document["events_left_out"] == 50
    assert document["summary"]["nvme_resets"] == EVENTS_MAX + 50


def test_a_bundle_of_before_has_no_such_document(tmp_path: Path) -> None:
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry/summary.json").write_text(json.dumps({"collectors": [LOOKED["smart"]]}))
    assert of_bundle(tmp_path, some_run()) is None
    assert of_bundle(tmp_path / "nothing", some_run()) is None


def test_every_count_is_a_metric_that_a_requirement_may_bound() -> None:
    metrics = {name for name, one in load_metrics(METRICS).items() if one.file == "results/hardware_events.json"}
    assert metrics == {f"hardware.{name}" for name in made()["summary"]}


@pytest.mark.parametrize(
    ("device", "drive", "ours"),
    [
        ("nvme1", "nvme1n1", True), ("nvme1", "nvme11n1", False), ("nvme1", "nvme10n1", False), ("nvme1n1", "nvme1n1", True),
        ("nvme1c2n1", "nvme1n1", True), ("nvme1n1p2", "nvme1n1", True), ("sda1", "sda", True), ("sda", "sdaa", False),
        ("sdaa", "sda", False), ("md0", "md0", True), ("md0p1", "md0", True), ("md01", "md0", False), ("none", "sda", False),
    ],
)  # fmt: skip
def test_which_drive_the_kernel_means(device: str, drive: str, ours: bool) -> None:
    assert is_of_drive(device, drive) == ours


def scene(*points: Point) -> Scene:
    """A dip from 100 s to 110 s after the begin of the load."""
    tracks = tracks_from(points) if points else Tracks({})
    drives, at = ["nvme1n1"], START_S
    return Scene(tracks, drives, "md0", [], at, at + 100, at + 110, 1e9)


@pytest.mark.parametrize(
    ("points", "cause"),
    [
        ([message(101.0), message(103.0, messages=2)], "kernel_log"),
        ([message(101.0, "md0", "array")], "kernel_log"),
        ([message(101.0, "none", "machine_check")], "kernel_log"),
        ([message(101.0, "nvme2")], "unknown"),
        ([message(101.0, "none", "lost", 9)], "unknown"),
        ([message(50.0)], "unknown"),
        ([message(float(at)) for at in range(60, 130)], "unknown"),  # all the time: no cause of this dip
        ([], "unknown"),
    ],
)
def test_a_dip_is_put_down_to_the_kernels_log_where_it_came_with_it(points: list[Point], cause: str) -> None:
    found = attribute(scene(*points))
    assert found.cause == cause
    if len(points) == 2:
        assert found.evidence[0].text == "nvme1: 3 resets in the kernel's log (+1.0 s from the dip's begin)"


@pytest.mark.parametrize(
    ("at_s", "behind", "cause"),
    [
        (101.0, "sda nvme1n1", "kernel_log"),
        (98.0, "nvme1n1", "kernel_log"),  # its reset ended the last requests
        (101.0, "sda sdb", "unknown"),  # another adapter's
        (101.0, "nvme1n10 nvme11n1", "unknown"),
        (101.0, None, "unknown"),  # an older agent's, which does not tell what is behind it
        (50.0, "sda nvme1n1", "unknown"),  # long before
        (150.0, "sda nvme1n1", "unknown"),
    ],
)
def test_the_reset_of_an_adapter_is_a_cause_for_the_drives_behind_it(
    at_s: float, behind: str | None, cause: str
) -> None:
    tags = {"device": "mpt3sas_cm0", "kind": "disk_link", **({"drives": behind} if behind else {})}
    found = attribute(scene(point("kernel_event", at_s, tags, messages=1, text="mpt3sas_cm0: sending diag reset !!")))
    assert found.cause == cause
    if at_s == 101.0 and cause != "unknown":
        said = "mpt3sas_cm0, which carries nvme1n1: 1 disk link fault in the kernel's log (+1.0 s from the dip's begin)"
        assert [one.text for one in found.evidence] == [said]


@pytest.mark.parametrize(
    ("device", "kind", "cause"),
    [
        ("none", "clocksource", "kernel_log"),  # every request reads the clock
        ("nvme1n1", "iommu_fault", "kernel_log"),
        ("nvme2n1", "iommu_fault", "unknown"),
        ("none", "iommu_fault", "unknown"),
    ],
)
def test_a_clock_slows_all_and_an_iommu_fault_its_own_device(device: str, kind: str, cause: str) -> None:
    assert attribute(scene(message(101.0, device, kind))).cause == cause


def bmc(
    at_s: float, sensor: str = "Power Supply PS1", asserted: bool | None = True, earlier_s: float | None = 2.0
) -> Point:
    fields = {"record": 1, "text": "said", "asserted": asserted, "earlier_s": earlier_s}
    return point("ipmi_event", at_s, {"sensor": sensor}, **{key: one for key, one in fields.items() if one is not None})


@pytest.mark.parametrize(
    ("points", "cause"),
    [
        ([logged(101.0)], "drive_log"),
        ([logged(101.0, "thermal_excursion")], "drive_temperature"),
        ([logged(101.0, "pcie_link")], "pcie_link"),
        ([logged(150.0, earlier_s=60.0)], "drive_log"),  # at any time of the minute before, the dip included
        ([logged(150.0, earlier_s=5.0)], "unknown"),
        ([logged(101.0, device="nvme2n1")], "unknown"),
        ([logged(80.0), logged(101.0)], "unknown"),  # as before
        ([bmc(101.0)], "bmc_log"),
        ([bmc(130.0, earlier_s=30.0)], "bmc_log"),
        ([bmc(130.0)], "unknown"),
        ([bmc(101.0, asserted=False)], "unknown"),  # it ended
        ([bmc(101.0, "Session Audit #0x11")], "unknown"),  # somebody's login
        ([bmc(101.0, earlier_s=None)], "unknown"),  # an older agent's, whose time says little
        ([bmc(75.0), bmc(101.0)], "unknown"),
        ([bmc(101.0, asserted=None)], "bmc_log"),
        (
            [
                point("smart_ocp", float(at), {"device": "nvme1n1"}, pcie_link_retrainings=4 + 3 * (at > 104))
                for at in range(60, 130, 5)
            ],
            "pcie_link",
        ),
    ],
)
def test_a_dip_is_put_down_to_what_came_with_it(points: list[Point], cause: str) -> None:
    assert attribute(scene(*points)).cause == cause


def test_an_event_of_uncertain_time_says_between_when_it_came() -> None:
    (evidence,) = attribute(scene(logged(150.0, earlier_s=60.0))).evidence
    assert (
        evidence.text
        == "nvme1n1: 1 media or data integrity error in its own log (between -10.0 and +50.0 s from the dip's begin)"
    )


def test_tracks_of_the_log_hold_numbers_only() -> None:
    track: Track | None = tracks_from([message(1.0), message(2.0)]).get(
        "kernel_event", "nvme1 (nvme_reset)", "messages"
    )
    assert track is not None and np.array_equal(track.values, [1.0, 1.0])
