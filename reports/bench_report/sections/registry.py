"""The sections in the order of the report; they stand between the record and the candidate's telemetry."""

from __future__ import annotations

from bench_report.document.section import Maker, Section
from bench_report.reading.dataset import Bundle
from bench_report.sections import (
    concurrent_analysis,
    endurance,
    hot_store,
    interference,
    lan,
    latency_under_load,
    minidaq_scan,
    record_conditions,
    saturation,
    steady_state,
    streams_checksum,
    thread_scan,
)
from bench_report.sections.cost import cost_section
from bench_report.sections.dips import dips_section
from bench_report.sections.raid_vs_3dxp import raid_section
from bench_report.sections.telemetry_account import telemetry_account_section
from bench_report.sections.thermal import thermal_section

MAKERS: tuple[Maker, ...] = (
    record_conditions.make,
    thread_scan.section,
    minidaq_scan.section,
    latency_under_load.section,
    steady_state.make,
    saturation.section,
    endurance.section,
    thermal_section,
    interference.section,
    raid_section,
    streams_checksum.section,
    hot_store.section,
    lan.section,
    concurrent_analysis.section,
    dips_section,
    cost_section,
    telemetry_account_section,
)


def sections_of(bundle: Bundle) -> list[Section]:
    made = (make(bundle) for make in MAKERS)
    return [section for section in made if section is not None]
