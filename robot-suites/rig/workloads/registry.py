"""Every workload that a scenario may name."""

from __future__ import annotations

from bench_model.profiles import Scenario
from rig.workloads import (
    concurrent_analysis,
    endurance,
    fio_scan,
    hot_store,
    interference,
    lan,
    latency_under_load,
    minidaq_scan,
    raid_vs_3dxp,
    saturation,
    snb_record,
    steady_state,
    streams_checksum,
    thermal,
    thread_scan,
)
from rig.workloads.base import Workload

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
