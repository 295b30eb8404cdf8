"""Every workload that a scenario may name."""

from __future__ import annotations

from bench_model.profiles.scenarios import Scenario
from rig.workloads import block_scan as fio_scan
from rig.workloads import latency_under_load, minidaq_scan, saturation, snb_record, thread_scan
from rig.workloads.concurrent_analysis import workload as concurrent_analysis
from rig.workloads.endurance import workload as endurance
from rig.workloads.hot_store import workload as hot_store
from rig.workloads.interference import workload as interference
from rig.workloads.lan import workload as lan
from rig.workloads.raid_vs_3dxp import workload as raid_vs_3dxp
from rig.workloads.shared.base import Workload
from rig.workloads.steady_state import workload as steady_state
from rig.workloads.streams_checksum import workload as streams_checksum
from rig.workloads.thermal import workload as thermal

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        fio_scan.WORKLOAD,
        snb_record.WORKLOAD,
        thread_scan.WORKLOAD,
        minidaq_scan.WORKLOAD,
        latency_under_load.WORKLOAD,
        steady_state.WORKLOAD,
        thermal.WORKLOAD,
        endurance.WORKLOAD,
        saturation.WORKLOAD,
        interference.WORKLOAD,
        raid_vs_3dxp.WORKLOAD,
        streams_checksum.WORKLOAD,
        hot_store.WORKLOAD,
        lan.WORKLOAD,
        concurrent_analysis.WORKLOAD,
    )
}


def workloads_of(scenario: Scenario) -> list[Workload]:
    """The scenario's workloads in the order of its file."""
    return [WORKLOADS[name] for name in scenario.workloads]


def declared_limits(scenario: Scenario) -> list[str]:
    """In what the scenario, as it was asked for, is no real measurement."""
    return [text for workload in workloads_of(scenario) for text in workload.limits(scenario)]
