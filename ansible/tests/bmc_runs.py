"""Runs the roles bios and fans, alone or in the playbooks, against a virtual BMC. Touches tmp_path and 127.0.0.1 alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from playbook_runs import ANSIBLE, Bench, PlaybookRun

from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.ports import free_ports

PASSWORD_VARIABLE = "BENCH_TEST_BMC_PASSWORD"
GUARD = ANSIBLE / "roles/fans/files/fan_guard.py"
ROLE_PLAY = """
- hosts: candidates
  gather_facts: false
  vars_files: [{vars_file}]
  vars:
    bench_host: {{host: {{dmi: {{}}}}}}
  tasks:
    - ansible.builtin.import_role: {{name: {role}, tasks_from: {tasks}}}
    - ansible.builtin.copy:
        content: "{{{{ {role}_records | default({role}_result.records) | to_json }}}}"
        dest: "{records}"
        mode: "0644"
      delegate_to: localhost
      changed_when: false
      check_mode: false
"""


def virtual_bmc(directory: Path, cache: Path, vendor: str = "supermicro") -> Bmc:
    """Return a virtual BMC on free ports."""
    return Bmc(directory / "bmc", *free_ports(3), vendor=vendor, cache=cache)


class BmcBench(Bench):
    """A candidate in a directory whose BMC is a virtual one."""

    def __init__(self, root: Path, bmc: Bmc) -> None:
        """Name the BMC in the inventory entry; ask for nothing."""
        super().__init__(root)
        self.device = bmc
        self.tuning = {}
        self.control_state = root / "control-state"
        self.variables["bench_control_state_dir"] = str(self.control_state)
        self.entry: dict[str, Any] = {
            "address": "127.0.0.1",
            "ipmi_port": bmc.ipmi_port,
            "redfish_port": bmc.redfish_port,
            "redfish_ca_file": str(bmc.ca_file),
            "user": bmc.user,
            "password_env": PASSWORD_VARIABLE,
            "vendor": bmc.vendor,
            "cipher_suite": 3,
        }
        self.environment = {PASSWORD_VARIABLE: bmc.password}

    def candidate(self) -> dict[str, Any]:
        """Return the inventory entry with its BMC."""
        return {**super().candidate(), "bmc": self.entry}

    @property
    def lease(self) -> Path:
        """Return the fan guard's lease."""
        return self.control_state / "fans-lease.json"

    def guard(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call the guard's command line."""
        argv = [sys.executable, str(GUARD), command, "--lease", str(self.lease), *arguments]
        return subprocess.run(argv, text=True, capture_output=True, timeout=60, check=False)

    def guard_status(self) -> dict[str, Any]:
        """Return the guard's own status."""
        status: dict[str, Any] = json.loads(self.guard("status").stdout)
        return status

    def role(self, role: str, tasks: str, *arguments: str, **variables: Any) -> PlaybookRun:
        """Run one role's tasks alone; its records are then in `role_records`."""
        records = self.root / "records.json"
        records.unlink(missing_ok=True)
        play = self.root / "play.yml"
        vars_file = ANSIBLE / "playbooks/vars/candidate.yml"
        play.write_text(ROLE_PLAY.format(role=role, tasks=tasks, vars_file=vars_file, records=records))
        return self.run(str(play), *arguments, **variables)

    def role_records(self) -> dict[str, dict[str, str]]:
        """Return the records of the last role run, keyed by setting."""
        return {record["id"]: record for record in json.loads((self.root / "records.json").read_text())}

    def everything_written(self) -> str:
        """Return the text of every file below the test's directory but the BMC's own."""
        texts = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if Path(folder, name) != self.device.directory]
            texts += [Path(folder, name).read_bytes().decode(errors="replace") for name in names]
        return "\n".join(texts)
