"""How warm a run was: the inlet air by the BMC, and the hottest of the target's drives. One number per run, degC.

The inlet is a covariate proper. A drive's temperature also follows from what the drive did, so that it explains less than it seems to."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError
from bench_model.bundle.files import LINE_MAX, REMEDY, SPOOL_BYTES_MAX, find_document, open_file
from bench_model.bundle.line_protocol import parse_line
from bench_model.bundle.telemetry_files import points_files

INLET, DRIVE = "inlet air", "hottest drive"
START = b"\nipmi_sensor,"
INLET_NAMES = ("inlet", "ambient")
INLET_ENTITIES = ("55.", "64.")  # IPMI 2.0, table 43-13: air inlet (37h, and 40h as older firmware has it)
FIELD = "temperature_degc"
BLOCK_BYTES = 1 << 24


def temperatures_of(bundle: Path) -> dict[str, float]:
    """Median of the inlet's readings and the drives' highest, where the run has them, by name."""
    found: dict[str, float] = {}
    inlet = [value for file in points_files(bundle) for value in _inlet(file)]
    if inlet:
        found[INLET] = float(statistics.median(inlet))
    drive = _drive(find_document(bundle, "results/drive_temperature.json") or {})
    if drive is not None:
        found[DRIVE] = drive
    return found


def _inlet(spool: Path) -> Iterator[float]:
    """Looks for the BMC's lines alone, block by block: a spool may hold ten million others."""
    rest = b"\n"
    with open_file(spool.parent, spool.name, SPOOL_BYTES_MAX) as file:
        while block := file.read(BLOCK_BYTES):
            data = rest + block
            last = data.rfind(b"\n")  # what follows has its end in the next block, or is still being written
            at = data.find(START, 0, last)
            while at >= 0:
                end = data.find(b"\n", at + 1)
                line = data[at + 1 : end].decode("utf-8", "replace")
                if FIELD in line:
                    point = parse_line(line)
                    named = any(name in point.tags.get("sensor", "").lower() for name in INLET_NAMES)
                    if named or point.tags.get("entity", "").startswith(INLET_ENTITIES):
                        yield float(point.fields[FIELD])
                at = data.find(START, end, last)
            rest = data[last:]
            if len(rest) > LINE_MAX:
                raise BenchError(f"{spool}: has a line of more than {LINE_MAX} characters. {REMEDY}")


def _drive(document: Mapping[str, Any]) -> float | None:
    hottest = (document.get("hottest_sensor") or {}).get("degC")
    value = document.get("max_degC") if document.get("max_degC") is not None else hottest
    return None if value is None else float(value)
