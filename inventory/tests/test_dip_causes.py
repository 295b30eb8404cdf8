"""Each cause of a dip is named by what changed with it, and unknown stays unknown."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dip_tracks import COUNT, HOT, dipped, disturbed, errors

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from daq_bench.audit.good import small_run
from tracks_factory import BEGIN_S, DRIVE, drive, hazard, scenery, track

from daq_bench.bench_model.behaviour.dip_documents import dips_document, throttling_document
from daq_bench.bench_model.behaviour.load_windows import target_counter
from daq_bench.bench_model.bundle.line_protocol import parse_line
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks, from_points, rates
from daq_bench.bench_model.documents.dips import Dips, Throttling
from daq_bench.bench_model.documents.struct import read

CAUSES: dict[str, dict[tuple[str, str, str], Track]] = {
    "drive_temperature": drive(COUNT, HOT, temperature=True),
    "drive_log": {("smart", DRIVE, "media_errors"): track(lambda time: 3 + 4 * (time >= 310), COUNT, 10.0)},
    "pcie_link": {("pcie_link", DRIVE, "bandwidth_bytes_per_s"): disturbed(7.877e9, 1.97e9, 5.0)},
    "cpu_frequency": {("cpu_frequency", "0", "frequency_hz"): disturbed(3.3e9, 1.5e9)},
    "interrupt_or_numa": {("cpu", "0", "softirq_fraction"): disturbed(0.05, 0.9)},
    "host_contention": {("cpu", "total", "steal_fraction"): disturbed(0.0, 0.4)},
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_dip_is_put_down_to_what_changed_with_it(cause: str) -> None:
    (window,) = dips_document(scenery(dipped(), CAUSES[cause]))["windows"]
    (dip,) = window["dips"]
    assert dip["cause"] == cause
    assert {one["cause"] for one in dip["evidence"]} == {cause}
    assert dip["not_looked_at"] == []


@pytest.mark.parametrize("warm", [drive(COUNT, HOT, temperature=True, warning=True), {}], ids=["hot", "cool"])
def test_both_documents_are_of_their_types_as_they_are_made(warm: dict[Any, Track]) -> None:
    scene = scenery(dipped(), warm)
    assert read(dips_document(scene), Dips, "results/dips.json").summary.dips == 1
    read(throttling_document(scene), Throttling, "results/throttling.json")


PORT = f"{DRIVE} (0000:3a:00.0)"


@pytest.mark.parametrize(
    ("cause", "key", "signal"),
    [
        ("degraded_array", ("md_array", DRIVE, "degraded"), disturbed(0, 1)),
        (
            "degraded_array",
            ("md_array", DRIVE, "sync_completed_fraction"),
            Track(BEGIN_S + np.arange(300.0, 400), np.ones(100) / 2),
        ),
        ("pcie_link", ("pcie_errors", PORT, "correctable"), errors(0.0, 200.0)),
        ("pcie_link", ("pcie_errors", PORT, "correctable"), errors(10.0, 200.0)),
        ("pcie_link", ("pcie_errors", PORT, "nonfatal"), errors(0.0, 0.02)),
        ("cpu_frequency", ("cpu_throttle", "1", "core_throttle_count"), errors(0.0, 3.0)),
        ("cpu_frequency", ("cpu_throttle", "1", "package_throttle_count"), errors(0.0, 0.1)),
        ("interrupt_or_numa", ("interrupts", DRIVE, "remote_fraction"), disturbed(0.05, 0.8)),
        # Always there, or another device's: no cause.
        ("unknown", ("md_array", DRIVE, "degraded"), disturbed(1, 1)),
        ("unknown", ("md_array", "md5", "degraded"), disturbed(0, 1)),
        ("unknown", ("md_array", DRIVE, "sync_completed_fraction"), track(lambda time: time / COUNT, COUNT)),
        ("unknown", ("pcie_errors", PORT, "correctable"), errors(200.0, 200.0)),
        ("unknown", ("pcie_errors", PORT, "correctable"), errors(0.0, 0.03)),
        ("unknown", ("pcie_errors", "eth0 (0000:5e:00.0)", "fatal"), errors(0.0, 200.0)),
        ("unknown", ("cpu_throttle", "1", "core_throttle_count"), errors(3.0, 3.0)),
        ("unknown", ("interrupts", DRIVE, "remote_fraction"), disturbed(0.8, 0.9)),
    ],
)
def test_a_counter_or_a_share_explains_a_dip_only_where_it_changed_with_it(
    cause: str, key: tuple[str, str, str], signal: Track
) -> None:
    (dip,) = dips_document(scenery(dipped(), {key: signal}))["windows"][0]["dips"]
    assert (dip["cause"], {one["cause"] for one in dip["evidence"]}) == (cause, {cause} - {"unknown"})
    assert dip["not_looked_at"] == []


def test_arrays_interrupts_and_ports_are_told_apart_by_their_subjects() -> None:
    """An array's members, the cores that take a drive's interrupts and the ports above it each have points of their own."""
    lines = (
        "md_array,device=md127 degraded=1i 1",
        'md_array,device=md127,member=sda errors=5i,state="faulty" 1',
        "interrupts,device=nvme0n1,driver=nvme,core=total remote_fraction=0.5 1",
        "interrupts,device=nvme0n1,driver=nvme,core=7 interrupts_per_s=5,remote=true 1",
        "pcie_errors,device=nvme0n1,function=0000:3a:00.0 correctable=1i 1",
        "pcie_errors,device=nvme0n1,function=0000:3b:00.0 correctable=2i 1",
    )
    assert sorted(from_points(parse_line(line) for line in lines).found) == [
        ("interrupts", "nvme0n1", "remote_fraction"),
        ("md_array", "md127", "degraded"),
        ("pcie_errors", "nvme0n1 (0000:3a:00.0)", "correctable"),
        ("pcie_errors", "nvme0n1 (0000:3b:00.0)", "correctable"),
    ]


@pytest.mark.parametrize(
    "signal",
    [
        {("pressure", "cpu", "stalled_fraction"): disturbed(0.01, 0.5)},
        {("block_device", "sda", "written_bytes_per_s"): disturbed(1e6, 2e9)},
        {("block_device", DRIVE, "read_bytes_per_s"): disturbed(0.0, 2e9)},
    ],
)
def test_contention_shows_in_stalls_and_in_the_bytes_of_others(signal: dict[tuple[str, str, str], Track]) -> None:
    document = dips_document(scenery(dipped(), signal))
    assert document["windows"][0]["dips"][0]["cause"] == "host_contention"


def test_another_writer_on_the_same_drive_shows_beside_the_loads_own_account() -> None:
    """The device goes on at its rate, and half of that is no more ours."""
    own = disturbed(5e9, 2.5e9)
    scene = scenery(dipped(), {("block_device", DRIVE, "written_bytes_per_s"): track(lambda _: 5e9, COUNT)})
    for account, cause in ((own, "host_contention"), (track(lambda _: 5e9, COUNT), "unknown"), (None, "unknown")):
        scene.windows[0] = replace(scene.windows[0], own=account)
        (dip,) = dips_document(scene)["windows"][0]["dips"]
        assert dip["cause"] == cause


def test_stalls_for_io_explain_nothing_since_a_slow_drive_makes_them() -> None:
    document = dips_document(scenery(dipped(), {("pressure", "io", "stalled_fraction"): disturbed(0.2, 0.9)}))
    assert document["windows"][0]["dips"][0]["cause"] == "unknown"
    assert document["summary"]["unexplained"] == 1


def test_a_circumstance_that_was_there_before_explains_nothing() -> None:
    always = {("cpu", "total", "steal_fraction"): track(lambda _: 0.4, COUNT)}
    assert dips_document(scenery(dipped(), always))["windows"][0]["dips"][0]["cause"] == "unknown"


def test_a_commanded_hazard_comes_first_and_the_drives_evidence_stays() -> None:
    events = [hazard(299, f"drive {DRIVE} is held to 50MB/s")]
    (window,) = dips_document(scenery(dipped(), drive(COUNT, HOT, warning=True), events))["windows"]
    (dip,) = window["dips"]
    assert dip["cause"] == "commanded_hazard"
    assert [one["cause"] for one in dip["evidence"]] == ["commanded_hazard", "drive_temperature"]


@pytest.mark.parametrize(
    "events",
    [
        [hazard(100, "a fan stands still")],
        [hazard(298, "drive is held"), hazard(299, "every hazard is released", released=True)],
    ],
)
def test_a_hazard_long_before_or_already_released_is_no_cause(events: list[dict[str, Any]]) -> None:
    assert dips_document(scenery(dipped(), None, events))["windows"][0]["dips"][0]["cause"] == "unknown"


def test_what_nobody_collected_is_listed_beside_an_unknown_cause() -> None:
    scene = scenery(dipped())
    scene.tracks.found = {key: one for key, one in scene.tracks.found.items() if key[0] != "cpu_frequency"}
    (dip,) = dips_document(scene)["windows"][0]["dips"]
    assert (dip["cause"], dip["not_looked_at"]) == ("unknown", ["CPU frequency"])


def test_a_late_sample_shifts_bytes_and_loses_none() -> None:
    """The agent reads at 3.4 s instead of 3: interpolation keeps the sum, and the rate within a tenth of the truth."""
    times = np.array([0.0, 1.0, 2.0, 3.4, 4.0, 5.0])
    counter = Track(BEGIN_S + times, times * 1e9)
    found = rates(counter, BEGIN_S, BEGIN_S + 5, 1.0)
    assert found == pytest.approx([1e9] * 5)
    assert rates(counter, BEGIN_S + 10, BEGIN_S + 20, 1.0) == []


def test_an_array_that_counts_nothing_is_measured_by_its_drives() -> None:
    still = Track(BEGIN_S + np.arange(3.0), np.zeros(3))
    first, second = (Track(BEGIN_S + np.arange(3.0), np.arange(3.0) * rate) for rate in (1e9, 2e9))
    names = {"md127": still, "nvme0n1": first, "nvme1n1": second}
    tracks = Tracks({("block_device", name, "written_bytes"): one for name, one in names.items()})
    array = small_run.target(*map(small_run.drive, ("nvme0n1", "nvme1n1")), device=small_run.drive("md127"))
    counter, source = target_counter(array, tracks)
    assert counter is not None
    assert (counter.values.tolist(), source) == ([0.0, 3e9, 6e9], "block_device nvme0n1+nvme1n1 written_bytes")
    del tracks.found["block_device", "nvme1n1", "written_bytes"]
    assert target_counter(array, tracks) == (None, "")


def test_nothing_collected_is_no_error() -> None:
    scene = scenery(dipped())
    scene.tracks.found.clear()
    assert throttling_document(scene)["watched"] == []
    assert Tracks().get("smart", DRIVE, "critical_warning") is None
