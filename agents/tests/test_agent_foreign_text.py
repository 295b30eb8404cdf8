"""Whatever a drive, a BMC or a kernel prints, the agent's readers give values or a ValueError: no other exception, no bad number."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "inventory" / "tests"))
from foreign_text import harmed_json, harmed_text

from telemetry_agent.base.line_parser import parse_line
from telemetry_agent.base.tools import Answer
from telemetry_agent.devices import ipmi_text, kernel_text, nvme_pages, smartctl_json, vendor_pages
from telemetry_agent.devices.drive_questions import decoded

CORPUS = Path(__file__).resolve().parents[2] / "inventory" / "corpus"
DRIVES = tuple(json.loads(file.read_text(encoding="utf-8")) for file in sorted(CORPUS.glob("smartctl-*/raw")))
SENSORS = """Inlet Temp       | 04h | ok  |  7.1 | 23 degrees C
Fan1             | 30h | ok  |  7.1 | 8520 RPM
Pwr | 77h | ns | 10.1 | No Reading
"""
POWER = "    Instantaneous power reading:                   220 Watts\n    Power reading state is:                   activated\n"
LOG = "1,11/20/2026,12:00:01,Power Unit #0x01,Power off/down,Asserted\n"
STATE = "Entries          : 12\nFree Space       : 9000 bytes\nLast Add Time    : 11/20/2026 12:00:01\n"
KERNEL = "6,1234,98765432,-;nvme nvme1: I/O 12 QID 3 timeout, aborting\n SUBSYSTEM=nvme\n"
LINE = 'cpu,host=a\\ b,core=0 busy=0.5,count=3i,on=true,text="a" 1795428009447467552'
SOME = settings(max_examples=300, derandomize=True, deadline=5000, suppress_health_check=list(HealthCheck))


def held(read: Callable[[], Any]) -> None:
    try:
        found = read()
    except ValueError as error:
        assert len(str(error)) < 2000
        return
    for value in found.values() if isinstance(found, dict) else ():
        assert not isinstance(value, float) or math.isfinite(value)


@SOME
@given(harmed_json(DRIVES))
def test_smartctl(text: str) -> None:
    try:
        document = decoded(Answer(0, text.encode("utf-8", "surrogatepass"), b""))
    except ValueError as error:
        assert len(str(error)) < 2000
        return
    for read in (smartctl_json.answer_fault, smartctl_json.identity, smartctl_json.health_fields, smartctl_json.temperatures,
                 smartctl_json.limits, smartctl_json.is_volume):  # fmt: skip
        held(lambda read=read: read(document))  # type: ignore[misc]


@pytest.mark.parametrize(
    "read",
    [
        nvme_pages.health_fields,
        nvme_pages.temperatures,
        nvme_pages.identity,
        nvme_pages.supported_pages,
        vendor_pages.ocp_fields,
    ],
)
@SOME
@given(
    size=st.sampled_from([0, 1, 15, 511, 512, 4095, 4096]),
    fill=st.sampled_from([0x00, 0xFF, None]),
    seed=st.integers(0, 2**32),
)
def test_nvme_pages(read: Callable[[bytes], Any], size: int, fill: int | None, seed: int) -> None:
    page = random.Random(seed).randbytes(size) if fill is None else bytes([fill]) * size
    held(lambda: read(page))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (ipmi_text.parse_sensors, SENSORS),
        (ipmi_text.parse_power, POWER),
        (ipmi_text.parse_log, LOG),
        (ipmi_text.parse_log_state, STATE),
        (kernel_text.parse_message, KERNEL),
        (parse_line, LINE),
    ],
)
def test_lines(read: Callable[[str], Any], text: str) -> None:
    read(text)  # what is not harmed is read

    @SOME
    @given(harmed_text((text,)))
    def harmed(changed: str) -> None:
        held(lambda: read(changed))

    harmed()
