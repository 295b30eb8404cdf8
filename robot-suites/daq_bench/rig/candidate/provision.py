"""Runs the Ansible playbooks against the candidate; their facts land in the run bundle's `facts/`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.documents.facts import Setting, Tuning
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.evidence.admissibility import HELD
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.rig.base.bundle import to_json, write_atomically
from daq_bench.rig.base.influx import READ_TOKEN, TOKEN, TOKEN_BEFORE
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import LocalShell, Shell
from daq_bench.rig.base.terminal import printable_lines
from daq_bench.rig.candidate.disclosure import disclosed_variables, secrets_of, without
from daq_bench.rig.candidate.machine import Machine, Places

SHARED_MEMORY = Path("/dev/shm")
PLAYS_ON = "DAQ_BENCH_PLAYS_ON"  # tells the candidate to whatever a playbook starts here
PLAYBOOK_S_MAX = 4 * 3600.0  # sanitizing a drive and a reboot take their time; each step in it has a tighter limit


@dataclass(frozen=True)
class Provisioner:
    """Ansible for one candidate. `variables` are the extra variables that every playbook gets."""

    shell: Shell
    repository: Path
    inventory: Path
    candidate: str
    log_directory: Path
    variables: dict[str, Any]
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    withheld: tuple[str, ...] = field(default=(), repr=False)  # words that its log, which goes into the bundle, has not
    scratch: Path | None = None  # for Ansible's own files, where the disk that usually has them is full

    def run(self, playbook: str, tuning_file: str = "tuning.json", check: bool = False, **more: Any) -> str:
        """Runs `playbook` (without .yml) with `more` variables; it writes `tuning_file` among its facts. Returns Ansible's output.
        Its variables, as far as a bundle may hold them, lie beside its log. All variables are data: Ansible expands no template in them.

        `check`: changes nothing, reports the changes that it would make.

        Raises BenchError with the end of Ansible's output when it fails."""
        name = f"ansible-{playbook}-{Path(tuning_file).stem}"
        variables = self.log_directory / f"{name}-variables.json"
        values = {**self.variables, "bench_facts_tuning_file": tuning_file, **more}
        write_atomically(variables, to_json(unsafe(disclosed_variables(values))))
        log = self.log_directory / f"{name}.log"
        # The inventory is code and may read any variable; the InfluxDB tokens are withheld from it.
        environment = {
            **{name: value for name, value in os.environ.items() if name not in (TOKEN, READ_TOKEN, TOKEN_BEFORE)},
            "ANSIBLE_CONFIG": str(self.repository / "ansible" / "ansible.cfg"),
            "LC_ALL": "C.UTF-8",
            PLAYS_ON: self.candidate,
            **({"TMPDIR": str(self.scratch), "ANSIBLE_LOCAL_TEMP": str(self.scratch)} if self.scratch else {}),
            # While it runs, its log tells the display which task is under way; the whole output takes its place at the end.
            **({} if self.scratch else {"ANSIBLE_LOG_PATH": str(log)}),
            **self.secrets,
        }
        with tempfile.NamedTemporaryFile(
            "w", suffix=".json", dir=self.scratch, encoding="utf-8"
        ) as whole:  # its owner's alone
            whole.write(to_json(unsafe(values)))
            whole.flush()
            argv: list[str | Path] = [
                Path(sys.executable).parent / "ansible-playbook",
                f"--inventory={self.inventory}",
                f"--limit={self.candidate}",
                f"--extra-vars=@{whole.name}",
                *(["--check", "--diff"] if check else []),
                self.repository / "ansible" / "playbooks" / f"{playbook}.yml",
            ]
            try:
                completed = self.shell.run(argv, timeout_s=PLAYBOOK_S_MAX, env=environment)
            except BaseException:
                end_connections(self.candidate)
                raise
        said = printable_lines(completed.stdout + completed.stderr)
        write_atomically(log, without(said, self.withheld))
        if completed.returncode != 0:
            end_connections(self.candidate)
            said = first_error(completed.stdout + completed.stderr)
            raise BenchError(f"playbook {playbook} failed on {self.candidate}: {said} (whole output: {log})")
        return completed.stdout


def end_connections(candidate: str) -> None:
    """Ends the ssh of playbooks on the candidate. A task that was given up leaves its own, and below it the shared one, for as long as the
    candidate's command does not return."""
    mark = f"{PLAYS_ON}={candidate}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")[0]
            if words.split(b":")[0].rpartition(b"/")[2] == b"ssh" and mark in (process / "environ").read_bytes().split(
                b"\0"
            ):
                os.kill(int(process.name), signal.SIGTERM)
        except OSError:  # it has ended, or is somebody else's
            continue


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder for a playbook that must run although a disk is full: in memory, where this machine has that."""
    with tempfile.TemporaryDirectory(
        prefix="daq-bench-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    ) as folder:
        yield Path(folder)


def drift(settings: Iterable[Setting]) -> list[str]:
    """Returns one line for each setting that differs from the inventory; a setting that the machine cannot have is no drift."""
    return [
        f"{one.id} ({one.subject}) asked for {one.asked} but reads back {one.read_back or 'nothing'}"
        for one in settings
        if one.status not in HELD
    ]


def drift_in(tuning: Path) -> list[str]:
    """Returns the drift that a playbook has recorded. Raises BenchError for a missing or empty record: the drift is unknown then."""
    try:
        settings = read(json.loads(tuning.read_text(encoding="utf-8")), Tuning, tuning.name).settings
    except (OSError, ValueError, RecursionError, BenchError) as error:
        raise BenchError(f"{tuning}: the settings that were read back cannot be read: {in_words(error)}") from None
    if not settings:
        raise BenchError(f"{tuning}: no setting was read back, so that nothing says whether the tuning is in force")
    return [
        f"{line}: {one.detail}" if one.detail and not one.detail.startswith(f"asked {one.asked}") else line
        for one in settings
        for line in drift([one])
    ]


def unsafe(value: Any) -> Any:
    """`value` for a JSON file of extra variables, its strings marked so that Ansible expands no template in them."""
    if isinstance(value, str):
        return {"__ansible_unsafe": value}
    if isinstance(value, dict):
        return {key: unsafe(one) for key, one in value.items()}
    return [unsafe(one) for one in value] if isinstance(value, list | tuple) else value


def provisioner(
    layout: Layout,
    candidate: Candidate,
    inventory: Path,
    machine: Machine,
    places: Places,
    facts: Path,
    target: Path,
    run_id: str,
    influx_token: str = "",
) -> Provisioner:
    """Ansible for the candidate, with the variables that the playbooks ask for; `facts` gets the evidence and the logs.

    `influx_token`: the token for the agent's service; a token of our environment that is meant for another server stays here."""
    shell = LocalShell()
    return Provisioner(
        shell=shell,
        repository=layout.repository,
        inventory=inventory,
        candidate=candidate.name,
        log_directory=facts,
        variables={
            "bench_repo": str(layout.repository),
            # The entry as the bench has read and checked it replaces the inventory's own, which Ansible would expand.
            "bench_candidate": candidate.document,
            "bench_facts_dir": str(facts),
            "bench_target": candidate.target.name,
            "bench_target_directory": str(target),
            "bench_daqwriter_source": str(layout.daqwriter if machine.is_local else layout.portable_daqwriter),
            **{f"bench_{name}_source": str(file) if file.is_file() else "" for name, file in layout.programs.items()},
            "bench_agent_source": str(layout.agent),
            "bench_analysis_reader_source": str(layout.analysis_reader),
            "bench_install_dir": str(places.programs),
            "bench_state_dir": str(places.state),
            "bench_control_state_dir": str(layout.state_directory(candidate.name)),
            "bench_run_id": run_id,
            **({"bench_become": True} if machine.is_local and needs_sudo(shell) else {}),
        },
        secrets={**bmc_secret(layout, candidate), TOKEN_BEFORE: influx_token},
        withheld=secrets_of(inventory, candidate.name, candidate.document),
    )


def bmc_secret(layout: Layout, candidate: Candidate) -> dict[str, str]:
    """The password of the candidate's BMC, as `secret_of` finds it."""
    return secret_of(layout, candidate.name, candidate.document.get("bmc", {}))


def secret_of(layout: Layout, name_of_candidate: str, bmc: Mapping[str, Any]) -> dict[str, str]:
    """The BMC's password as the environment variable that the roles read: from our environment, or from the file that the inventory names.

    Raises BenchError when the file cannot be read or others may read it."""
    name = bmc.get("password_env")  # no BMC, or one that is only reached in band, has none
    if name is None:
        return {}
    if name in os.environ:
        return {name: os.environ[name]}
    if "password_file" not in bmc:
        return {}
    file = layout.home / bmc["password_file"]
    try:
        if file.stat().st_mode & 0o077:
            raise BenchError(
                f"{file}: others may read the BMC's password. Let its owner alone read it: `chmod 600 {file}`"
            )
        return {name: file.read_text(encoding="utf-8").strip()}
    except OSError as error:
        raise BenchError(
            f"{name_of_candidate}: bmc.password_file {file}: {error.strerror}. Write the BMC's password into it, or set the environment "
            f"variable {name}"
        ) from None


def needs_sudo(shell: Shell) -> bool:
    """True for a user who is not root and may become root without a password.

    Without either, Ansible records each setting that it could not make as refused, with the remedy."""
    if os.geteuid() == 0 or shutil.which("sudo") is None:
        return False
    return shell.run(["sudo", "--non-interactive", "true"], timeout_s=20).returncode == 0


def first_error(output: str) -> str:
    """Returns Ansible's message for the first task that failed; the end of its output where it marks none."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("[ERROR]:", "ERROR!"))]
    return marked[0].split(":", 1)[-1].strip() if marked else " ".join(lines[-5:])
