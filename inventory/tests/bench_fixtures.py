"""Fixtures of the benches' tests, for the conftest.py beside them: a folder on a file system that takes O_DIRECT, the programs that are
measured, and a document of what was."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def disk() -> Iterator[Path]:
    """The system's temporary folder may be in memory; the checkout is not."""
    parent = ROOT / "build" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def daqwriter() -> Path:
    path = ROOT / "build" / "native-writer" / "daqwriter"
    if not path.exists():
        pytest.fail(f"{path} is missing; `make native` builds it")
    return path


@pytest.fixture(scope="session")
def agent() -> Path:
    path = ROOT / "build" / "telemetry_agent.pyz"
    if not path.exists():
        pytest.fail(f"{path} is missing; `make agent` builds it")
    return path


@pytest.fixture(scope="session")
def influxd() -> Path:
    path = Path(os.environ.get("INFLUXD_BIN") or ROOT / "build" / "tools" / "influxd")
    if not path.exists():
        pytest.fail(f"{path} is missing; `make influxd` builds it, INFLUXD_BIN names another")
    return path


def results_of(part: str, reservations: list[str], **more: Any) -> dict[str, Any]:
    """Returns the results of a part of `make bench`; `more`: its measurements."""
    machine = {
        "cpu_model": "a CPU",
        "cpus": 2,
        "memory_bytes": 8 << 30,
        "kernel": "6.1",
        "governor": None,
        "filesystem": "ext4",
        "device": None,
        "free_bytes": 10**12,
        "load_average_before": [0.1, 0.1, 0.1],
        "busy_share_before": 0.01,
    }
    return {
        "part": part,
        "title": f"title of {part}",
        "counts_as_claim": not reservations,
        "reservations": reservations,
        "started_utc": "2026-01-01T00:00:00.000Z",
        "machine": machine,
        "versions": {"fio": "fio-3.33", "daqwriter": "0.1.0", "bench": "abc"},
        "notes": [],
        "points": [],
        "criteria": [],
        **more,
    }
