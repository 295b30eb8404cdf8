"""Tells what the bench's units leave open, by systemd's own account: rendered as the roles do, judged by `systemd-analyze security`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLES = Path(__file__).resolve().parents[1] / "roles"
NIGHTLY = ROLES.parents[1] / "docs/nightly"
VARIABLES: dict[str, dict[str, Any]] = {
    "telemetry/templates/daq-bench-agent.service.j2": {
        "telemetry_influx_token": "token",
        "__telemetry_secret_file": "/etc/daq-bench-agent/token.env",
        "__telemetry_spool": "/var/lib/daq-storage-bench/spool",
        "telemetry_found": {"paths": {"agent_python": "/usr/bin/python3"}},
        "telemetry_install_dir": "/opt/daq-storage-bench",
        "telemetry_agent_arguments": ["run"],
        "telemetry_stop_s": 30,
    },
    "influxdb/templates/daq-bench-influxdb.service.j2": {
        "influxdb_major": 1,
        "influxdb_data_dir": "/var/lib/influxdb",
        "__influxdb_user": "influxdb",
        "__influxdb_program": "/usr/bin/influxd",
        "__influxdb_config": "/etc/influxdb/influxdb.conf",
    },
}
# systemd's scale: 10 is open, 0 is closed. The agent needs drives, a BMC, other processes' counters and the network; InfluxDB the network.
EXPOSURE_MAX = {"daq-bench-agent.service": 4.2, "daq-bench-influxdb.service": 1.8}

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed on this machine"
)


def unit(directory: Path, template: str) -> Path:
    """The unit as the role writes it."""
    text = (ROLES / template).read_text(encoding="utf-8")
    variables = {"ansible_managed": "test", **VARIABLES[template]}
    made = directory / Path(template).stem
    made.write_text(Templar(DataLoader(), variables=variables).template(trust_as_template(text)))
    return made


def exposure(path: Path) -> float:
    """The overall exposure that systemd finds."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    found = re.search(rf"Overall exposure level for {re.escape(path.name)}: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


@needs_systemd
@pytest.mark.parametrize("template", VARIABLES)
def test_a_unit_leaves_open_no_more_than_it_needs(tmp_path: Path, template: str) -> None:
    """Its exposure is at most what was reached, and a unit without its sandbox would be found."""
    path = unit(tmp_path, template)
    assert exposure(path) <= EXPOSURE_MAX[path.name]
    closed = ("SystemCallFilter=", "ProtectKernelModules=", "RestrictNamespaces=", "CapabilityBoundingSet=")
    opened = [line for line in path.read_text().splitlines() if not line.startswith(closed)]
    path.write_text("\n".join(opened) + "\n")
    assert exposure(path) > EXPOSURE_MAX[path.name] + 2


@needs_systemd
def test_nights_behind_ssh_alone_leave_little_open(tmp_path: Path) -> None:
    """The drop-in closes what the service of root leaves open; without its empty set of capabilities it would not."""
    service = tmp_path / "daq-bench-nightly.service"
    shutil.copy(NIGHTLY / service.name, service)
    assert exposure(service) > 9
    drop_in = tmp_path / f"{service.name}.d" / "unprivileged.conf"
    drop_in.parent.mkdir()
    text = (NIGHTLY / drop_in.name).read_text()
    drop_in.write_text(text)
    assert exposure(service) <= 1.9
    assert "CapabilityBoundingSet=\n" in text
    drop_in.write_text(text.replace("CapabilityBoundingSet=\n", ""))
    assert exposure(service) > 3


@needs_systemd
def test_systemd_understands_every_line_of_the_drop_in(tmp_path: Path) -> None:
    """A misspelt line is ignored by systemd with a warning that names the file."""
    service = tmp_path / "daq-bench-nightly.service"
    shutil.copy(NIGHTLY / service.name, service)
    drop_in = tmp_path / f"{service.name}.d" / "unprivileged.conf"
    drop_in.parent.mkdir()
    text = (NIGHTLY / drop_in.name).read_text()
    for written, warned in ((text, False), (text.replace("ProtectClock=", "ProtectClocks="), True)):
        drop_in.write_text(written)
        said = subprocess.run(
            ["systemd-analyze", "verify", str(service)], capture_output=True, text=True, timeout=60, check=False
        )
        assert (drop_in.name in said.stderr) is warned, said.stderr


@needs_systemd
@pytest.mark.parametrize("template", VARIABLES)
def test_systemd_understands_every_line_of_a_unit(tmp_path: Path, template: str) -> None:
    """A misspelt setting is ignored by systemd with a warning: there is none but for programs that are not on this machine."""
    path = unit(tmp_path, template)
    said = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    warnings = [line for line in said.stderr.splitlines() if path.name in line and "is not executable" not in line]
    assert not warnings, json.dumps(warnings)
