"""The roles bench_tools and telemetry against a candidate reached by SSH: a container that lacks what they bring."""

from __future__ import annotations

import ensurepip
import json
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nspawn import Container, container, missing_requirement
from playbook_runs import PlaybookRun, run_playbook

pytestmark = pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement())

REPOSITORY = Path(__file__).resolve().parents[2]
INSTALL, SPOOL = "/opt/daq-storage-bench", "/var/lib/daq-storage-bench/spool"
AGENT_ARGUMENTS = ["run", f"--spool-dir={SPOOL}", "--no-influx", "--tag=host=virtual", "--tag=note=100%n $HOME \"'\\x"]
PLAYBOOK = """
- hosts: candidates
  gather_facts: false
  tasks:
    - name: Run the roles' part
      ansible.builtin.include_role: {name: "{{ item }}", tasks_from: "{{ part }}"}
      loop: "{{ roles_asked }}"
"""


def compile_program(directory: Path, *options: str, source: str = "") -> Path:
    """Compile a daqwriter that can only print its version."""
    directory.mkdir(parents=True, exist_ok=True)
    text = source or '#include <stdio.h>\nint main(void) { return puts("daqwriter 1.2.3") < 0; }\n'
    (directory / "main.c").write_text(text)
    program = directory / "daqwriter"
    subprocess.run(["cc", "-o", str(program), str(directory / "main.c"), *options], check=True)
    return program


def library(directory: Path) -> Path:
    """Compile a shared library that no machine has."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "nowhere.c").write_text("int nowhere(void) { return 0; }\n")
    made = directory / "libnowhere.so.1"
    options = ["-shared", "-fPIC", "-Wl,-soname,libnowhere.so.1"]
    subprocess.run(["cc", *options, "-o", str(made), str(directory / "nowhere.c")], check=True)
    return made


CALLS_LIBRARY = (
    '#include <stdio.h>\nint nowhere(void);\nint main(void) { puts("daqwriter 1.2.3"); return nowhere(); }\n'
)


def make_deb(directory: Path, name: str, depends: str, command: str = "", relation: str = "Depends") -> Path:
    """Build a real package whose only content is a command that prints its version."""
    tree = directory / name
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 99\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
    (tree / "DEBIAN/control").write_text(control + (f"{relation}: {depends}\n" if depends else ""))
    if command:
        program = tree / "usr/bin" / command
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho {command}-99\n")
        program.chmod(0o755)
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(directory)], check=True, capture_output=True
    )
    return directory / f"{name}_99_all.deb"


class Candidate:
    """The container and the variables that the playbooks' candidate.yml would give the roles."""

    def __init__(self, host: Container, directory: Path) -> None:
        """Build the agent and a program."""
        self.host, self.directory = host, directory
        agent = directory / "telemetry_agent.pyz"
        build = [sys.executable, str(REPOSITORY / "agents/build_pyz.py"), "--output", str(agent)]
        subprocess.run(build, check=True, capture_output=True)
        self.variables: dict[str, Any] = {
            "bench_tools_install_dir": INSTALL,
            "bench_tools_daqwriter_source": str(compile_program(directory / "plain")),
            "bench_tools_agent_source": str(agent),
            "bench_tools_os_family": ["debian"],
            "telemetry_install_dir": INSTALL,
        }

    def run(
        self, *arguments: str, roles: tuple[str, ...] = ("bench_tools", "telemetry"), part: str = "main", **more: Any
    ) -> PlaybookRun:
        """Run the roles."""
        inventory, playbook = self.directory / "inventory.yml", self.directory / "roles.yml"
        inventory.write_text(
            json.dumps({"all": {"children": {"candidates": {"hosts": {"virtual": self.host.inventory()}}}}})
        )
        playbook.write_text(PLAYBOOK)
        variables = {**self.variables, "roles_asked": list(roles), "part": part, **more}
        return run_playbook(str(playbook), inventory, variables, *arguments)


@pytest.fixture(scope="module")
def candidate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Candidate]:
    """One container for the whole module."""
    directory = tmp_path_factory.mktemp("services")
    with container(directory / "host") as host:
        yield Candidate(host, directory)


def test_a_candidate_that_lacks_a_tool_is_refused_with_the_ways_out(candidate: Candidate) -> None:
    """The refusal comes before anything is copied."""
    run = candidate.run()
    assert run.code != 0
    assert "virtual lacks fio: install fio, or set bench_install_packages: true, or put the .deb files" in run.text
    assert candidate.host.ssh(f"ls {INSTALL}").returncode != 0


def test_a_program_that_cannot_run_there_is_refused_before_it_is_copied(candidate: Candidate, tmp_path: Path) -> None:
    """Another processor, a library that is not there; the remedy is named."""
    foreign = compile_program(tmp_path / "foreign")
    image = bytearray(foreign.read_bytes())
    image[18:20] = (183).to_bytes(2, "little")  # e_machine: aarch64
    foreign.write_bytes(image)
    run = candidate.run(bench_tools_daqwriter_source=str(foreign))
    assert run.code != 0
    assert (
        "virtual cannot be a candidate: daqwriter: built for aarch64 and the candidate is x86_64. Use a control node of the"
        in run.text
    )

    made = library(tmp_path / "lacking")
    lacking = compile_program(tmp_path / "lacking", str(made), source=CALLS_LIBRARY)
    run = candidate.run(bench_tools_daqwriter_source=str(lacking))
    assert run.code != 0
    assert "the candidate lacks libnowhere.so.1. Build it with make native-portable" in run.text
    assert candidate.host.ssh(f"ls {INSTALL}").returncode != 0


def test_an_air_gapped_candidate_gets_what_it_lacks_from_the_control_node(candidate: Candidate, tmp_path: Path) -> None:
    """Programs, their libraries and .deb files are pushed; nothing else of the directory is installed; and all is undone."""
    debs = tmp_path / "debs"
    debs.mkdir()
    make_deb(debs, "fio", "libbench1 (>= 1) | libother1, python3", "fio")
    make_deb(debs, "libbench1", "").rename(debs / "libbench1_1%3a99_all.deb")  # as apt names a version with an epoch
    make_deb(debs, "unrelated", "")
    make_deb(debs, "mdadm", "libabsent1", "mdadm")
    make_deb(debs, "nvme-cli", "libc6 (>= 99)", "nvme")
    make_deb(debs, "libc6", "")  # fits nvme-cli, but would replace the candidate's own
    make_deb(debs, "smartmontools", "openssh-server", "smartctl", relation="Conflicts")
    made = library(tmp_path / "program/lib")
    program = compile_program(tmp_path / "program", str(made), "-Wl,-rpath,$ORIGIN/lib", source=CALLS_LIBRARY)
    variables = {"bench_tools_daqwriter_source": str(program), "bench_tools_packages_dir": str(debs)}

    hook = """echo 'DPkg::Pre-Invoke {"touch /hooked"};' > /etc/apt/apt.conf.d/99hook"""
    assert candidate.host.ssh(hook).returncode == 0
    packages, own_apt = (
        "dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n'",
        "find /etc/apt /var/lib/apt/lists -ls",
    )
    packages_before, apt_before = candidate.host.ssh(packages).stdout, candidate.host.ssh(own_apt).stdout

    check = candidate.run("--check", **variables)
    assert check.code == 0, check.output
    assert candidate.host.ssh(f"ls {INSTALL}; dpkg -s fio").returncode != 0
    assert candidate.host.ssh(packages).stdout == packages_before

    first = candidate.run(**variables)
    assert first.code == 0, first.output
    new = set(candidate.host.ssh(packages).stdout.splitlines()) ^ set(packages_before.splitlines())
    assert new == {"fio 99 installed", "libbench1 99 installed"}
    assert candidate.host.ssh(own_apt).stdout == apt_before
    assert candidate.host.ssh("ls /hooked /tmp/bench-apt-*").stdout == ""
    assert candidate.host.ssh(f"{INSTALL}/daqwriter").stdout == "daqwriter 1.2.3\n"
    assert candidate.host.ssh(f"ls {INSTALL} /usr/sbin/policy-rc.d").stdout.split() == [
        *(f"{INSTALL}:", "daqwriter", "lib", "telemetry_agent.pyz"),
    ]
    second = candidate.run(**variables)
    assert (second.code, second.changed) == (0, 0), second.output

    restored = candidate.run(part="restore", **variables)
    assert restored.code == 0, restored.output
    assert candidate.host.ssh(f"ls {INSTALL}").stdout == ""
    assert candidate.host.ssh("fio").stdout == "fio-99\n"  # packages stay

    asked = {**variables, "bench_tools_required": ["fio", "mdadm", "nvme", "smartctl"]}
    refused = candidate.run(roles=("bench_tools",), **asked)
    assert refused.code != 0
    lacking = re.search(r"virtual lacks ([a-z, ]+):", refused.text)
    assert lacking and sorted(lacking[1].split(", ")) == ["mdadm", "nvme", "smartctl"]
    assert "mdadm : Depends: libabsent1 but it is not installable" in refused.text
    assert "nvme-cli : Depends: libc6 (>= 99) but" in refused.text
    assert "smartmontools would remove or replace openssh-server of the candidate" in refused.text
    nowhere = candidate.run(roles=("bench_tools",), **{**asked, "bench_tools_packages_dir": str(tmp_path / "nowhere")})
    assert f"bench_packages_dir is {tmp_path / 'nowhere'}, which is no directory on the control node" in nowhere.text


def make_wheel(directory: Path, name: str, version: str = "1.0") -> None:
    """Build a wheel whose module is empty."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)


def test_the_analysis_readers_libraries_need_no_pip_on_the_candidate(candidate: Candidate, tmp_path: Path) -> None:
    """The container has neither pip nor ensurepip. An installation that breaks is made good by the next run; other wheels replace it."""
    without = "python3 -c 'import pip' || python3 -c 'import ensurepip'"
    assert candidate.host.ssh(without).returncode != 0
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in ("uproot", "awkward", "distributed", "numpy"):
        make_wheel(wheels, name)
    asked = {"bench_tools_required": ["python3"], "bench_tools_analysis_wheels": str(wheels)}
    roles = ("bench_tools",)
    refused = candidate.run(roles=roles, **asked)
    assert refused.code != 0
    assert f"{wheels} has no files pip-*.whl, and one is needed: fetch the wheels with `pip download" in refused.text
    # Python's own place for it, and Debian's.
    kept = (Path(ensurepip.__file__).parent / "_bundled", Path("/usr/share/python-wheels"))
    shutil.copy(next(wheel for place in kept for wheel in place.glob("pip-*.whl")), wheels)
    check = candidate.run("--check", roles=roles, **asked)
    assert check.code == 0, check.output
    broken = candidate.run(roles=roles, **asked)
    assert broken.code != 0
    assert "No matching distribution found for scipy" in broken.text

    make_wheel(wheels, "scipy")
    first = candidate.run(roles=roles, **asked)
    assert first.code == 0, first.output
    python = f"{INSTALL}/analysis/bin/python"
    assert candidate.host.ssh(f"{python} -c 'import uproot, awkward, distributed, numpy, scipy'").returncode == 0
    second = candidate.run(roles=roles, **asked)
    assert (second.code, second.changed) == (0, 0), second.output
    make_wheel(wheels, "scipy", "1.1")
    assert candidate.run(roles=roles, **asked).code == 0
    version = "from importlib.metadata import version; print(version('scipy'))"
    assert candidate.host.ssh(f'{python} -c "{version}"').stdout == "1.1\n"
    restored = candidate.run(part="restore", roles=roles)
    assert restored.code == 0, restored.output
    assert candidate.host.ssh(f"ls {INSTALL}").stdout == ""


def test_the_agents_service_is_installed_runs_and_is_removed(candidate: Candidate) -> None:
    """The role does not start it; run by systemctl, it samples within its sandbox and ends in order; only the agent can read its token."""
    asked = {
        "bench_tools_required": ["python3"],
        "telemetry_agent_arguments": AGENT_ARGUMENTS,
        "telemetry_influx_token": 'tok3n"$x\\%',
    }
    check = candidate.run("--check", **asked)
    assert check.code == 0, check.output
    first = candidate.run(**asked)
    assert first.code == 0, first.output
    assert candidate.host.ssh("systemctl is-active daq-bench-agent").stdout == "inactive\n"
    second = candidate.run(**asked)
    assert (second.code, second.changed) == (0, 0), second.output

    started = candidate.host.ssh("systemctl start daq-bench-agent")
    assert started.returncode == 0, started.stderr
    wait_for_file(candidate.host, f"{SPOOL}/summary.json")
    environment = candidate.host.ssh("cat /proc/$(systemctl show -P MainPID daq-bench-agent)/environ").stdout
    assert 'DAQ_BENCH_INFLUX_TOKEN=tok3n"$x\\%' in environment.split("\0")
    time.sleep(2)
    assert candidate.host.ssh("systemctl stop daq-bench-agent").returncode == 0
    assert candidate.host.ssh("systemctl show -P Result daq-bench-agent").stdout == "success\n"
    summary = json.loads(candidate.host.ssh(f"cat {SPOOL}/summary.json").stdout)
    assert summary["state"] == "finished"
    cpu = next(one for one in summary["collectors"] if one["name"] == "cpu")
    assert cpu["collected_samples"] >= 2
    points = candidate.host.ssh(f"head -n 1 {SPOOL}/points.lp").stdout
    assert "note=100%n\\ $HOME\\ \"'\\x" in points

    assert candidate.host.ssh("stat -c '%a %U' /etc/daq-bench-agent/token.env").stdout == "600 root\n"
    told = candidate.host.ssh(
        "journalctl --no-pager; systemctl cat daq-bench-agent; systemctl show daq-bench-agent"
    ).stdout
    assert "tok3n" not in told + first.output + second.output

    without = candidate.run(bench_tools_required=["python3"])
    assert without.code == 0, without.output
    assert candidate.host.ssh("ls -d /etc/systemd/system/daq-bench-agent.service /etc/daq-bench-agent").stdout == ""
    assert candidate.run(**asked).code == 0
    assert candidate.host.ssh("systemctl start daq-bench-agent").returncode == 0
    restored = candidate.run(part="restore", roles=("telemetry",))
    assert restored.code == 0, restored.output
    assert candidate.host.ssh("systemctl show -P LoadState daq-bench-agent").stdout == "not-found\n"
    assert candidate.host.ssh("pgrep -f telemetry_agent.pyz").stdout == ""
    again = candidate.run(part="restore", roles=("telemetry",))
    assert (again.code, again.changed) == (0, 0), again.output


@pytest.mark.parametrize("arguments", [["run"], ["replay", f"--spool-dir={SPOOL}"], ["run", "--spool-dir=/a b"]])
def test_arguments_that_a_service_cannot_have_are_refused(candidate: Candidate, arguments: list[str]) -> None:
    """The message names the variable."""
    run = candidate.run(bench_tools_required=["python3"], telemetry_agent_arguments=arguments)
    assert run.code != 0
    assert "bench_agent_arguments must be a list that begins with `run`, names --spool-dir=/..." in run.text


def test_a_connection_that_is_lost_in_mid_play_is_said_and_the_next_run_ends_the_work(candidate: Candidate) -> None:
    """Every session dies as soon as the first program has arrived; sshd is back some seconds later."""
    asked = {"bench_tools_required": ["python3"], "telemetry_agent_arguments": AGENT_ARGUMENTS}
    assert candidate.run(part="restore").code == 0
    waits = f"until test -e {INSTALL}/daqwriter; do sleep 0.05; done"
    cut = "systemctl stop ssh; pkill -KILL sshd; sleep 8; systemctl start ssh"
    armed = candidate.host.ssh(f"systemd-run --collect --property=KillMode=none sh -c '{waits}; {cut}'")
    assert armed.returncode == 0, armed.stderr
    broken = candidate.run(**asked)
    assert broken.code != 0
    assert "virtual" in broken.text
    assert re.search("UNREACHABLE|unreachable", broken.output), broken.output
    assert re.search("(?i)ssh|connection", broken.text), broken.text
    until_s = time.monotonic() + 120
    while candidate.host.ssh("true").returncode != 0:
        assert time.monotonic() < until_s
        time.sleep(0.5)
    assert candidate.host.ssh("systemctl cat daq-bench-agent").returncode != 0  # it did not come that far
    again = candidate.run(**asked)
    assert again.code == 0, again.output
    assert candidate.host.ssh("systemctl cat daq-bench-agent").returncode == 0
    restored = candidate.run(part="restore")
    assert restored.code == 0, restored.output
    assert candidate.host.ssh(f"ls {INSTALL}").stdout == ""


def wait_for_file(host: Container, path: str) -> None:
    """Wait for a file, as the bench waits for the agent to be ready."""
    until_s = time.monotonic() + 120
    while host.ssh(f"test -s {path}").returncode != 0:
        journal = host.ssh("journalctl --no-pager -u daq-bench-agent").stdout
        assert time.monotonic() < until_s, journal
        time.sleep(0.2)
