"""Runs the playbooks as rig does, against this machine with a fake /sys and /proc/sys. Touches tmp_path alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.rig.base.bundle import to_json
from daq_bench.rig.candidate.provision import unsafe

ANSIBLE = Path(__file__).resolve().parents[1]
TUNING = {
    "cpu_governor": "performance",
    "aio_max_nr": 1048576,
    "queue_scheduler": "none",
    "fan_mode": "full",
    "bios_power_profile": "maximum-performance",
}


@dataclass(frozen=True)
class PlaybookRun:
    """The result of one ansible-playbook call."""

    code: int
    output: str

    @property
    def changed(self) -> int:
        """Number of tasks that changed something, over all hosts of the recap."""
        return sum(int(count) for count in re.findall(r"changed=(\d+)", self.output))

    @property
    def text(self) -> str:
        """The output with its line breaks and indentation folded, for searching messages."""
        return " ".join(self.output.split())


def run_playbook(
    playbook: str,
    inventory: Path,
    variables: dict[str, Any],
    *arguments: str,
    environment: dict[str, str] | None = None,
) -> PlaybookRun:
    """Run one playbook over an inventory; an extra variable given as None is left out."""
    extra = inventory.with_name("extra-vars.json")
    extra.write_text(to_json(unsafe({name: value for name, value in variables.items() if value is not None})))
    command = [sys.executable, "-m", "ansible", "playbook", "--inventory", str(inventory)]
    command += ["--extra-vars", f"@{extra}", str(ANSIBLE / "playbooks" / playbook), *arguments]
    merged = {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "ANSIBLE_FORCE_COLOR": "0"}
    merged |= environment or {}
    done = subprocess.run(command, cwd="/", env=merged, text=True, capture_output=True, timeout=120, check=False)
    return PlaybookRun(done.returncode, done.stdout + done.stderr)


def fake_cpus(root: Path, governors: dict[str, str], offered: str = "performance powersave") -> None:
    """Lay out cpufreq for the CPUs named, each with its current governor."""
    for cpu, governor in governors.items():
        folder = root / "devices/system/cpu" / cpu / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(governor + "\n")
        (folder / "scaling_available_governors").write_text(offered + "\n")


class Bench:
    """A candidate in a directory: fake kernel trees, real playbooks."""

    def __init__(self, root: Path) -> None:
        """Lay out directories, sources and the fake trees."""
        self.root, self.sysfs, self.sysctl = root, root / "sys", root / "proc-sys"
        self.facts, self.state, self.install = root / "facts", root / "state", root / "install"
        self.scratch, self.sources = root / "scratch", root / "sources"
        for folder in (self.scratch, self.sources, self.sysctl / "fs"):
            folder.mkdir(parents=True)
        (self.sysctl / "fs/aio-max-nr").write_text("65536\n")
        self._make_programs("1.2.3")
        self._make_queue()
        self.tuning: dict[str, Any] = dict(TUNING)
        self.targets: dict[str, Any] = {}  # by name, in place of the single one
        self.variables: dict[str, Any] = {
            "bench_facts_dir": str(self.facts),
            "bench_target_directory": str(self.scratch),
            "bench_daqwriter_source": str(self.sources / "daqwriter"),
            "bench_agent_source": str(self.sources / "telemetry_agent.pyz"),
            "bench_install_dir": str(self.install),
            "bench_state_dir": str(self.state),
            "bench_sysfs_root": str(self.sysfs),
            "bench_sysctl_root": str(self.sysctl),
        }
        self.environment: dict[str, str] = {}

    def _make_programs(self, version: str) -> None:
        daqwriter = self.sources / "daqwriter"
        daqwriter.write_text(f"#!/bin/sh\necho daqwriter {version}\n")
        daqwriter.chmod(0o755)
        with zipfile.ZipFile(self.sources / "telemetry_agent.pyz", "w") as archive:
            archive.writestr("__main__.py", f"print('telemetry_agent {version}')\n")

    def _make_queue(self) -> None:
        """Give the block device beneath tmp_path a queue in the fake tree, under an invented name."""
        device = self.scratch.stat().st_dev
        self.queue = self.sysfs / "block/fake0/queue"
        self.queue.mkdir(parents=True)
        (self.queue / "scheduler").write_text("none [mq-deadline] kyber\n")
        (self.queue / "nr_requests").write_text("256\n")
        (self.sysfs / "block/fake0/size").write_text("2048\n")
        (self.sysfs / "block/fake0/numa_node").write_text("1\n")
        self.number = self.sysfs / f"dev/block/{os.major(device)}:{os.minor(device)}"
        self.number.parent.mkdir(parents=True)
        self.number.symlink_to(self.sysfs / "block/fake0")

    def link_to_kernel(self, block_device: Path, limit: Path) -> None:
        """Let the target's drive and fs.aio-max-nr be real kernel objects, reached through the fake trees."""
        (self.sysfs / "block" / block_device.name).symlink_to(block_device)
        self.number.unlink()
        self.number.symlink_to(block_device)
        (self.sysctl / "fs/aio-max-nr").unlink()
        (self.sysctl / "fs/aio-max-nr").symlink_to(limit)

    def candidate(self) -> dict[str, Any]:
        """Return the inventory's entry for the candidate."""
        target = {"targets": self.targets} if self.targets else {"target": {"kind": "scratch-file"}}
        return {**target, "tuning": self.tuning}

    def inventory(self) -> Path:
        """Write the inventory for the present targets and tuning."""
        host = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "bench_candidate": self.candidate(),
        }
        path = self.root / "inventory.yml"
        path.write_text(json.dumps({"all": {"children": {"candidates": {"hosts": {"this-machine": host}}}}}))
        return path

    def run(self, playbook: str, *arguments: str, **variables: Any) -> PlaybookRun:
        """Run one playbook; an extra variable given as None is left out."""
        merged = {"bench_candidate": self.candidate(), **self.variables, **variables}
        return run_playbook(playbook, self.inventory(), merged, *arguments, environment=self.environment)

    def document(self, name: str) -> Any:
        """Read one facts file."""
        return json.loads((self.facts / name).read_text())

    def records(self, name: str = "tuning.json") -> dict[str, dict[str, str]]:
        """Read one tuning record, keyed by setting."""
        return {record["id"]: record for record in self.document(name)["settings"]}
