"""Tells how warm a run was: the inlet air by the BMC, and the hottest of the target's drives. One number per run, degC.

The inlet is a covariate proper. A drive's temperature also follows from what the drive did, so that it explains less than it seems to."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.behaviour.surroundings import is_inlet
from daq_bench.bench_model.bundle.files import LINE_MAX, REMEDY, SPOOL_BYTES_MAX, find_document, open_file
from daq_bench.bench_model.bundle.line_protocol import parse_line
from daq_bench.bench_model.bundle.telemetry_files import points_files
from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.inlet_names import without_mainboard

INLET, DRIVE = "inlet air", "hottest drive"
STARTS = (b"\nipmi_sensor,", b"\nredfish_sensor,")
FIELD = "temperature_degc"
BLOCK_BYTES = 1 << 24


def temperatures_of(bundle: Path) -> dict[str, float]:
    """Median of the inlet's readings and the drives' highest, where the run has them, by name."""
    found: dict[str, float] = {}
    # By IPMI, as in the nights before; by Redfish where that alone tells.
    by_source = ([one for file in points_files(bundle) for one in _inlet(file, start)] for start in STARTS)
    told = next((readings for readings in by_source if readings), [])
    names = without_mainboard(name for name, _ in told)
    inlet = [degrees for name, degrees in told if name in names]
    if inlet:
        found[INLET] = float(statistics.median(inlet))
    drive = _drive(find_document(bundle, "results/drive_temperature.json") or {})
    if drive is not None:
        found[DRIVE] = drive
    return found


def _inlet(spool: Path, start: bytes) -> Iterator[tuple[str, float]]:
    """Looks for the BMC's lines alone, block by block: a spool may hold ten million others."""
    rest = b"\n"
    with open_file(spool.parent, spool.name, SPOOL_BYTES_MAX) as file:
        while block := file.read(BLOCK_BYTES):
            data = rest + block
            last = data.rfind(b"\n")  # what follows has its end in the next block, or is still being written
            at = data.find(start, 0, last)
            while at >= 0:
                end = data.find(b"\n", at + 1)
                line = data[at + 1 : end].decode("utf-8", "replace")
                if FIELD in line:
                    point = parse_line(line)
                    if is_inlet(point) and plausible.is_running_degrees(float(point.fields[FIELD])):
                        yield point.tags.get("sensor", ""), float(point.fields[FIELD])
                at = data.find(start, end, last)
            rest = data[last:]
            if len(rest) > LINE_MAX:
                raise BenchError(f"{spool}: has a line of more than {LINE_MAX} characters. {REMEDY}")


def _drive(document: Mapping[str, Any]) -> float | None:
    hottest = (document.get("hottest_sensor") or {}).get("degC")
    value = document.get("max_degC") if document.get("max_degC") is not None else hottest
    return None if value is None else float(value)
