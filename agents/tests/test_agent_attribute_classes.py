"""The agent and the reports know the same ATA attributes as counts of errors, though neither imports the other."""

from __future__ import annotations

from daq_bench.bench_model.behaviour.smart_facts import ATA_ERRORS
from daq_bench.telemetry_agent.devices.smartctl_json import ATA_FIELDS


def test_the_agent_and_the_reports_agree() -> None:
    """The agent runs on a candidate and imports nothing of ours."""
    assert {number: needed for number, (needed, _) in ATA_FIELDS.items()} == ATA_ERRORS
