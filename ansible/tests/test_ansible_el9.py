"""A candidate with AlmaLinux 9's os-release, real dnf and rpm and small packages of EL's names, by SSH; and of other releases.

The files of the one that calls itself AlmaLinux are Debian's: no package of AlmaLinux is to be had here. So nothing is said of EL's
scriptlets, SELinux and kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from nspawn import UBUNTU, UBUNTU_KEYS, Container, container, missing_requirement
from playbook_runs import PlaybookRun
from ruamel.yaml import YAML
from test_ansible_services import INSTALL, Candidate
from test_ansible_systems import ALMALINUX, run

from daq_bench.crash_trials.campaign import forget
from daq_bench.crash_trials.candidate import LightCandidate, light_candidates
from daq_bench.crash_trials.trial import REQUIREMENT, SCENARIO
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.influx_server import LocalInflux

pytestmark = [pytest.mark.systems, pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement())]

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_FIO = "/usr/libexec/fio-debian"  # what the package fio starts
DEBIANS = (
    "fio",
    "numactl",
    "dnf",
    "rpm",
    "util-linux",
    "xfsprogs",
    "smartmontools",
    "mdadm",
    "nvme-cli",
    "ipmitool",
)  # where the programs have to work
PORT = 18790
FAMILY = ["almalinux", "rhel", "centos", "fedora"]
TOOLS = {  # EL's package of each tool that the bench installs
    "fio": "fio", "ipmitool": "ipmitool", "lsblk": "util-linux", "mdadm": "mdadm", "mkfs.xfs": "xfsprogs", "numactl": "numactl",
    "nvme": "nvme-cli", "python3": "python3", "smartctl": "smartmontools",
}  # fmt: skip


def make_rpms(folder: Path, *specs: str, does: str = "") -> Path:
    """Build a repository of packages; each of `specs` is NAME-VERSION[: tags] and brings a command of its tool's name.

    The command says its version, or does what `does` says.
    """
    commands = {package: tool for tool, package in TOOLS.items()}
    for spec in specs:
        named, _, tags = spec.partition(": ")
        name, _, version = named.rpartition("-")
        command = f"/opt/el9/bin/{commands.get(name, name)}"
        text = (
            f"Name: {name}\nVersion: {version}\nRelease: 1\nSummary: {name}\nLicense: Apache-2.0\n"
            f"BuildArch: noarch\nAutoReqProv: no\n{tags}\n"
            f"%description\n%install\nmkdir -p %{{buildroot}}/opt/el9/bin\n"
            f"printf '#!/bin/sh\\n%%s\\n' '{does or f'echo {name} {version}.0'}' > %{{buildroot}}{command}\n"
            f"%files\n%attr(0755,root,root) {command}\n"
        )
        (folder / f"{name}.spec").write_text(text)
        run(
            "rpmbuild",
            "-bb",
            "--quiet",
            f"--define=_topdir {folder}/build",
            f"--define=_rpmdir {folder}/made",
            folder / f"{name}.spec",
        )
    made = folder / "repository"
    shutil.move(folder / "made/noarch", made)
    run("createrepo_c", "--quiet", made)
    return made


def set_repository(host: Container, made: Path | None) -> None:
    """Switch on one repository of the candidate, or none."""
    text = ""
    if made is not None:
        shutil.copytree(made, host.root / "srv/appstream", dirs_exist_ok=True)
        text = "[appstream]\nname=appstream\nbaseurl=file:///srv/appstream\ngpgcheck=0\n"
    (host.root / "etc/yum.repos.d/own.repo").write_text(text)
    assert host.ssh("dnf clean all").returncode == 0


def become_el9(host: Container, made: Path | None = None) -> None:
    """Make it an AlmaLinux as far as its release, dnf and rpm say, with one repository."""
    (host.root / "etc/os-release").unlink()  # a link into /usr
    (host.root / "etc/os-release").write_text(f'{ALMALINUX}PRETTY_NAME="AlmaLinux 9.6 (Sage Margay)"\n')
    # What our packages bring is on PATH.
    ours = "rm -rf /usr/local/sbin /usr/local/bin && ln -s /opt/el9/bin /usr/local/sbin && ln -s /opt/el9/bin /usr/local/bin"
    done = host.ssh(f"rpm --initdb && rm -rf /etc/yum.repos.d && mkdir -p /etc/yum.repos.d /opt/el9/bin && {ours}")
    assert done.returncode == 0, done.stderr
    set_repository(host, made)


class El9(Candidate):
    """The container, with rpm's database of a machine that has but a few packages."""

    def __init__(self, host: Container, directory: Path) -> None:
        """Make it an AlmaLinux as far as its release, dnf and rpm say."""
        super().__init__(host, directory)
        self.variables["bench_tools_os_family"] = FAMILY
        become_el9(host)

    def must(self, command: str) -> str:
        """Run a command that has to succeed."""
        done = self.host.ssh(command, 120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def repository(self, made: Path | None) -> None:
        """Switch on one repository of the candidate, or none."""
        set_repository(self.host, made)

    def tools(self, **more: Any) -> PlaybookRun:
        """Run the role bench_tools."""
        return self.run(roles=("bench_tools",), **more)

    @property
    def packages(self) -> set[str]:
        """Lists what rpm says is installed."""
        return set(self.must("rpm --query --all --queryformat '%{NAME}-%{VERSION}\\n'").split())


@pytest.fixture
def el9(tmp_path: Path) -> Iterator[El9]:
    """Give a test a candidate of its own."""
    with container(tmp_path / "host", ("dnf", "rpm", "sudo", "util-linux")) as host:
        yield El9(host, tmp_path)


def installed(el9: El9, folder: Path, *specs: str) -> None:
    """Let the candidate have packages from the beginning."""
    folder.mkdir()
    made = make_rpms(folder, *specs)
    shutil.copytree(made, el9.host.root / "srv/first")
    el9.must("rpm --install /srv/first/*.rpm && rm -r /srv/first")


NAMES = [f"{name}-3" for name in TOOLS.values() if name not in ("python3", "util-linux")]


def test_missing_tools_come_from_the_candidates_repositories_and_replace_nothing(el9: El9, tmp_path: Path) -> None:
    """bench_install_packages on EL 9: by EL's names, without weak dependencies; a newer package of what is there stays where it is."""
    installed(el9, tmp_path / "first", "glibc-1", "bash-completion-1")
    before = el9.packages
    (tmp_path / "made").mkdir()
    made = make_rpms(
        tmp_path / "made",
        *(name for name in NAMES if not name.startswith(("fio", "nvme"))),
        *(
            "fio-3: Requires: libbench\nRecommends: unrelated",
            "libbench-3",
            "unrelated-3",
            "glibc-2",
            "nvme-cli-3: Requires: glibc",
        ),
        "bench-completion-3: Obsoletes: bash-completion",
    )
    el9.repository(None)
    lacks = el9.tools()
    assert lacks.code != 0
    assert (
        "virtual lacks fio: install fio, or set bench_install_packages: true, or put the .rpm files with their repodata"
        in lacks.text
    )
    refused = el9.tools(bench_tools_install_packages=True)
    assert refused.code != 0
    assert "dnf cannot install " in refused.text and "(CRB, EPEL)" in refused.text and "fio" in refused.text
    assert el9.packages == before

    el9.repository(made)
    check = el9.run("--check", roles=("bench_tools",), bench_tools_install_packages=True)
    assert check.code == 0, check.output
    assert el9.packages == before
    first = el9.tools(bench_tools_install_packages=True)
    assert first.code == 0, first.output
    assert el9.packages == before | {*NAMES, "libbench-3"}
    second = el9.tools(bench_tools_install_packages=True)
    assert (second.code, second.changed) == (0, 0), second.output
    restored = el9.run(part="restore", roles=("bench_tools",))
    assert restored.code == 0, restored.output
    assert el9.packages == before | {*NAMES, "libbench-3"}  # packages stay


def test_a_candidate_without_a_network_gets_them_from_a_folder_of_rpms(el9: El9, tmp_path: Path) -> None:
    """The candidate's own repository, which would bring something else, is not asked; what cannot be had without a replacement is named."""
    installed(el9, tmp_path / "first", "glibc-1")
    for name in ("own", "folder"):
        (tmp_path / name).mkdir()
    el9.repository(make_rpms(tmp_path / "own", "fio-9"))
    folder = make_rpms(
        tmp_path / "folder",
        "fio-3: Requires: libbench",
        "libbench-3",
        "glibc-2",
        "nvme-cli-3: Requires: glibc >= 2",
        "mdadm-3: Requires: absent",
    )
    before = el9.packages
    nowhere = el9.tools(bench_tools_packages_dir=str(tmp_path))
    assert nowhere.code != 0
    assert f"bench_packages_dir is {tmp_path}, which has no repodata/repomd.xml on the control node" in nowhere.text
    first = el9.tools(bench_tools_packages_dir=str(folder))
    assert first.code == 0, first.output
    assert el9.packages == before | {"fio-3", "libbench-3"}
    assert el9.host.ssh("ls -d /opt/daq-storage-bench/packages /tmp/bench-dnf-*").stdout == ""
    asked = el9.tools(bench_tools_packages_dir=str(folder), bench_tools_required=["fio", "mdadm", "nvme"])
    assert asked.code != 0
    assert "virtual lacks mdadm, nvme" in asked.text or "virtual lacks nvme, mdadm" in asked.text
    assert "dnf says of " in asked.text and "nothing provides absent needed by mdadm" in asked.text
    assert el9.packages == before | {"fio-3", "libbench-3"}


UNITS = {
    "tuned": "Type=simple\nExecStart=/bin/sleep infinity",
    "tlp": "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true",
    "power-profiles-daemon": "Type=simple\nExecStart=/bin/sleep infinity",
}


def test_tuned_is_stopped_while_the_bench_tunes_and_started_again(el9: El9) -> None:
    """By a real systemd. Units that start at boot still do, and units that did not run do not run afterwards."""
    for name, text in UNITS.items():
        unit = f"[Service]\n{text}\n[Install]\nWantedBy=multi-user.target\n"
        (el9.host.root / f"etc/systemd/system/{name}.service").write_text(unit)
    el9.must("systemctl daemon-reload && systemctl enable --now tuned tlp && systemctl enable power-profiles-daemon")

    def states() -> str:
        return el9.host.ssh(f"systemctl is-active {' '.join(UNITS)}; systemctl is-enabled {' '.join(UNITS)}").stdout

    before = states()
    assert before.split() == ["active", "active", "inactive", "enabled", "enabled", "enabled"]
    asked = {"bench_state_dir": "/var/lib/daq-storage-bench/state", "roles": ("cpu",)}
    left = el9.run(cpu_governor="keep", **asked)
    assert left.code == 0, left.output
    assert states() == before
    tuned = el9.run(cpu_governor="performance", **asked)
    assert tuned.code == 0, tuned.output
    assert states().split() == ["inactive", "inactive", "inactive", "enabled", "enabled", "enabled"]
    again = el9.run(cpu_governor="performance", **asked)
    assert (again.code, again.changed) == (0, 0), again.output
    restored = el9.run(part="restore", **asked)
    assert restored.code == 0, restored.output
    assert states() == before


def test_a_login_that_is_not_root_and_folders_from_which_nothing_may_be_started(el9: El9) -> None:
    """sudo, and /tmp, /var and the login's own folder mounted noexec; a sudo that wants a password is refused by its name."""
    el9.must("useradd --create-home bench && cp -r /root/.ssh /home/bench/ && chown -R bench /home/bench/.ssh")
    sudoers = el9.host.root / "etc/sudoers.d/bench"
    sudoers.write_text("bench ALL=(ALL) NOPASSWD: ALL\n")
    for folder in ("/tmp", "/var", "/home"):
        el9.must(f"mount --bind {folder} {folder} && mount -o remount,bind,noexec {folder}")
        el9.must(f"! sh -c 'cp /bin/true {folder}/tried && {folder}/tried' && rm {folder}/tried")
    asked = {
        "ansible_user": "bench",
        "ansible_become": True,
        "bench_tools_required": ["python3"],
        "telemetry_agent_arguments": [
            "run",
            "--spool-dir=/var/lib/daq-storage-bench/spool",
            "--no-influx",
            "--tag=host=virtual",
        ],
    }
    first = el9.run(**asked)
    assert first.code == 0, first.output
    assert el9.must(f"{INSTALL}/daqwriter") == "daqwriter 1.2.3\n"
    el9.must("systemctl start daq-bench-agent && systemctl is-active daq-bench-agent && systemctl stop daq-bench-agent")
    restored = el9.run(part="restore", **asked)
    assert restored.code == 0, restored.output
    sudoers.write_text("bench ALL=(ALL) ALL\n")
    refused = el9.run(**asked)
    assert refused.code != 0
    assert "sudo" in refused.text and "password" in refused.text


@contextmanager
def whole_qualification(
    monkeypatch: pytest.MonkeyPatch, made_ready: Callable[[LightCandidate], dict[str, Any]], suite: str = ""
) -> Iterator[tuple[LightCandidate, Path]]:
    """From discovery to the verdict, and everything put back: gives the candidate and the bundle.

    `made_ready` changes the candidate and returns its entry. smartctl and the like are its own; the drive is a loop device.
    """
    monkeypatch.setattr("daq_bench.crash_trials.candidate.PACKAGES", DEBIANS)
    folder = Layout().build / "tests" / f"system-{os.getpid()}"  # on a drive
    folder.mkdir(parents=True)
    influx = LocalInflux(Layout().influxd, folder / "influxdb")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        stack.callback(influx.stop)
        (light,) = stack.enter_context(light_candidates(folder, 1, suite=suite))
        stack.callback(forget, light)
        entry, before = made_ready(light), light.settings()
        lab = folder / "lab.yml"
        YAML(typ="safe").dump({"all": {"children": {"candidates": {"hosts": {light.name: entry}}}}}, lab)
        words = {"inventory": lab, "runs": folder / "runs", "scenario": SCENARIO, "requirement": REQUIREMENT}
        options = [f"--{name}={value}" for name, value in words.items()]
        argv = [sys.executable, "-m", "daq_bench.rig", "qualify", "--yes", "--candidate", light.name, *options]
        done = subprocess.run(
            [*argv, "--influx-url", influx.start(PORT)], env={**os.environ, "DAQ_BENCH_LOCK_DIR": str(folder)},
            text=True, capture_output=True, timeout=1500, check=False,
        )  # fmt: skip
        (bundle,) = (
            one for one in (folder / "runs").iterdir() if (one / "run.json").is_file() and not one.is_symlink()
        )
        assert json.loads((bundle / "run.json").read_text())["state"] == "finished", done.stdout + done.stderr
        assert (bundle / "verdict.json").is_file()
        watched = json.loads((bundle / "telemetry/summary.json").read_text())["points"]
        assert watched["rejected"] == watched["undelivered"] == 0 < watched["delivered"], watched  # through the relay
        assert light.settings() == before
        assert light.command("ls /opt/daq-storage-bench 2>/dev/null | wc -l") == "0\n"
        yield light, bundle


def test_a_whole_qualification_of_an_el9_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dnf brings fio (a package that starts Debian's) in the run."""
    (tmp_path / "made").mkdir()
    made = make_rpms(tmp_path / "made", "fio-3", does=f'exec {REAL_FIO} "$@"')

    def made_ready(light: LightCandidate) -> dict[str, Any]:
        become_el9(light.container, made)
        light.command(f"mv /usr/bin/fio {REAL_FIO}")
        return {**light.entry(), "bench_install_packages": True}

    with whole_qualification(monkeypatch, made_ready) as (light, bundle):
        assert json.loads((bundle / "run.json").read_text())["candidate"]["os"].startswith("AlmaLinux 9")
        assert json.loads((bundle / "facts/versions.json").read_text())["fio"] in light.command(f"{REAL_FIO} --version")
        assert "fio-3-1.noarch" in light.command("rpm --query fio")


@pytest.mark.parametrize(
    ("suite", "system", "glibc", "python"),
    [
        ("trixie", "Debian GNU/Linux 13", "2.41", "3.13"),
        ("jammy", "Ubuntu 22.04", "2.35", "3.10"),
        ("noble", "Ubuntu 24.04", "2.39", "3.12"),
    ],
)
def test_a_whole_qualification_of_a_candidate_of_another_release(
    monkeypatch: pytest.MonkeyPatch, suite: str, system: str, glibc: str, python: str
) -> None:
    """Its own packages, systemd, libc and Python; the kernel is this machine's."""
    if suite in UBUNTU and not UBUNTU_KEYS.exists():
        pytest.skip(
            f"Ubuntu's archive keys are not here: install package ubuntu-keyring, so that {UBUNTU_KEYS} is there"
        )
    with whole_qualification(monkeypatch, LightCandidate.entry, suite) as (light, bundle):
        assert json.loads((bundle / "run.json").read_text())["candidate"]["os"].startswith(system)
        assert light.command("getconf GNU_LIBC_VERSION") == f"glibc {glibc}\n"
        assert light.command("python3 --version").startswith(f"Python {python}.")


PROGRAMS = {
    "daqwriter": REPOSITORY / "build/native-writer/portable/daqwriter",
    "hotstore": REPOSITORY / "build/hot_store/hotstore",
    "netprobe": REPOSITORY / "build/network_probe/netprobe",
}


def test_the_built_programs_run_on_debian_11(tmp_path: Path) -> None:
    """glibc 2.31 and Python 3.9: the role brings them; they record, read back, keep a store and answer over a network."""
    absent = [str(file) for file in PROGRAMS.values() if not file.is_file()]
    assert not absent, f"{', '.join(absent)}: `make native` builds them"
    with container(tmp_path / "host", suite="bullseye") as host:
        sources = {f"bench_tools_{name}_source": str(file) for name, file in PROGRAMS.items()}
        done = Candidate(host, tmp_path).run(roles=("bench_tools",), bench_tools_required=["python3"], **sources)
        assert done.code == 0, done.output

        def must(command: str) -> str:
            done = host.ssh(f"cd {INSTALL} && {command}", 120)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout + done.stderr

        assert must("getconf GNU_LIBC_VERSION") == "glibc 2.31\n"
        assert must("python3 --version").startswith("Python 3.9.")
        must("./daqwriter minidaq --target=/var/tmp/r --duration=0.5 --links=2 --scale=0.05 --allow-memory-target")
        assert "verify intact" in must("./daqwriter verify --target=/var/tmp/r")
        must("./hotstore bench --dir=/var/tmp/store --seconds=1 --warm-up=0 --capacity=64MiB --backlog=8MiB")
        said = host.ssh(f"{INSTALL}/daqwriter verify --target=/no-such-file")
        assert said.returncode == 2 and "No such file or directory (ENOENT)" in said.stderr
        assert "serve" in must("./netprobe --help")
