"""Runs the Ansible playbooks against the candidate; their facts land in the run bundle's `facts/`."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError
from rig.bundle import to_json, write_text_atomically
from rig.settings import Layout
from rig.shell import Shell

PLAYBOOK_S_MAX = 900.0


@dataclass(frozen=True)
class Provisioner:
    """Ansible for one candidate. `variables` are the extra variables that every playbook gets."""

    shell: Shell
    repository: Path
    inventory: Path
    candidate: str
    log_directory: Path
    variables: dict[str, Any]

    def run(self, playbook: str, tuning_file: str = "tuning.json") -> None:
        """Runs `playbook` (without .yml), which writes `tuning_file` among its facts.

        Raises BenchError with the end of Ansible's output when it fails."""
        name = f"ansible-{playbook}-{Path(tuning_file).stem}"
        variables = self.log_directory / f"{name}-variables.json"
        write_text_atomically(variables, to_json({**self.variables, "bench_facts_tuning_file": tuning_file}))
        argv: list[str | Path] = [
            Path(sys.executable).parent / "ansible-playbook",
            f"--inventory={self.inventory}",
            f"--limit={self.candidate}",
            f"--extra-vars=@{variables}",
            self.repository / "ansible" / "playbooks" / f"{playbook}.yml",
        ]
        environment = {"ANSIBLE_CONFIG": str(self.repository / "ansible" / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
        completed = self.shell.run(argv, timeout_s=PLAYBOOK_S_MAX, env=environment)
        log = self.log_directory / f"{name}.log"
        write_text_atomically(log, completed.stdout + completed.stderr)
        if completed.returncode != 0:
            said = first_error(completed.stdout + completed.stderr)
            raise BenchError(f"playbook {playbook} failed on {self.candidate}: {said} (whole output: {log})")


def provisioner(
    shell: Shell, layout: Layout, inventory: Path, candidate: str, facts: Path, target: Path, run_id: str
) -> Provisioner:
    """Ansible for `candidate`, with the variables that the playbooks ask for; `facts` gets the evidence and the logs."""
    return Provisioner(
        shell=shell,
        repository=layout.repository,
        inventory=inventory,
        candidate=candidate,
        log_directory=facts,
        variables={
            "bench_repo": str(layout.repository),
            "bench_facts_dir": str(facts),
            "bench_target_directory": str(target),
            "bench_daqwriter_source": str(layout.daqwriter),
            "bench_agent_source": str(layout.agent),
            "bench_install_dir": str(layout.install_directory(candidate)),
            "bench_state_dir": str(layout.state_directory(candidate)),
            "bench_run_id": run_id,
            **({"bench_become": True} if needs_sudo(shell) else {}),
        },
    )


def needs_sudo(shell: Shell) -> bool:
    """True for a user who is not root and may become root without a password.

    Without either, Ansible records what it could not set as refused, with the remedy."""
    if os.geteuid() == 0 or shutil.which("sudo") is None:
        return False
    return shell.run(["sudo", "--non-interactive", "true"], timeout_s=20).returncode == 0


def first_error(output: str) -> str:
    """What Ansible says of the first task that failed; the end of its output where it marks none."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("[ERROR]:", "ERROR!"))]
    return marked[0].split(":", 1)[-1].strip() if marked else " ".join(lines[-5:])
