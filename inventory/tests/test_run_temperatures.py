"""The inlet's readings are found in a spool wherever its blocks end."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from daq_bench.bench_model.nights import run_temperatures
from daq_bench.bench_model.nights.run_temperatures import INLET, temperatures_of


def line(number: int, warm: bool) -> str:
    if not warm:
        return f"cpu,core={number} user_fraction=0.1 {number}"
    return f"ipmi_sensor,entity=55.1,host=x,sensor=Inlet temperature_degc={20 + number / 100!r} {number}"


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1000, 1 << 24])
def test_a_reading_that_two_blocks_share_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(run_temperatures, "BLOCK_BYTES", block_bytes)
    (tmp_path / "telemetry").mkdir()
    lines = [line(number, number % 3 != 1) for number in range(301)]
    torn = "ipmi_sensor,entity=55.1,sensor=Inlet temperature_degc=99.0"  # still being written
    (tmp_path / "telemetry" / "points.lp").write_text("\n".join([*lines, torn]), encoding="utf-8")
    wanted = [20 + number / 100 for number in range(301) if number % 3 != 1]
    assert temperatures_of(tmp_path) == {INLET: statistics.median(wanted)}


def test_an_empty_spool_has_no_temperature(tmp_path: Path) -> None:
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "points.lp").touch()
    assert temperatures_of(tmp_path) == {}


@pytest.mark.parametrize(
    ("ipmi", "median"), [("", 21.0), ("ipmi_sensor,entity=55.1,sensor=Inlet temperature_degc=24.0 1\n", 24.0)]
)
def test_redfish_tells_where_ipmi_does_not(tmp_path: Path, ipmi: str, median: float) -> None:
    """The nights before were told by IPMI: a second source must not shift their track."""
    spool = tmp_path / "telemetry" / "points.lp"
    spool.parent.mkdir()
    spool.write_text(f"{ipmi}redfish_sensor,chassis=1,resource=Thermal,sensor=Inlet temperature_degc=21.0 2\n")
    assert temperatures_of(tmp_path) == {INLET: median}
