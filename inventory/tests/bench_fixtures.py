"""Fixtures of the benches' tests, for the conftest.py beside them: a folder on a file system that takes O_DIRECT, and the programs that are
measured."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

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
