"""A small Linux system in a container, reached by SSH: the everyday target of role tests.

Promises: it runs a real systemd and sshd in a second; its root is built once per package list (mmdebstrap, a
minute) below the user's cache and never written to, since every container writes to a layer of its own; sshd
listens on 127.0.0.1 only, or on an address of the network namespace that `options` name; `stop` ends the processes
that `start` began and unmounts. It shares the host's kernel, and its network unless `options` say otherwise, so a
role must bind to loopback. Needs root.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from daq_bench.virtual_candidate.ports import free_ports

BASE_PACKAGES = ("systemd-sysv", "dbus", "openssh-server", "python3", "procps")
TOOLS = ("systemd-nspawn", "mmdebstrap", "ssh-keygen")
# Ubuntu's suites are built where its archive keys are (package ubuntu-keyring); fio is in universe.
UBUNTU, UBUNTU_KEYS = ("jammy", "noble"), Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
BUILD_S_MAX, START_S_MAX, STOP_S_MAX = 900.0, 60.0, 20.0
WITHOUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")
LOOPBACK = "127.0.0.1"
SSHD = "ListenAddress {address}\nPort {port}\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n"


def missing_requirement() -> str:
    """Return the reason why this machine cannot run containers; empty when it can."""
    if os.geteuid() != 0:
        return "systemd-nspawn needs root"
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"{', '.join(absent)} not installed (make packages-virtual)" if absent else ""


def cached_root(packages: tuple[str, ...] = (), suite: str = "") -> Path:
    """Return the root tree with the base packages and the given ones, building it if this user has none yet. `suite`: Debian's, or ours."""
    wanted = sorted({*BASE_PACKAGES, *packages})
    suite = suite or platform.freedesktop_os_release()["VERSION_CODENAME"]
    name = hashlib.sha256(" ".join([suite, platform.machine(), *wanted]).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "daq-storage-bench/nspawn"
    cache.mkdir(parents=True, exist_ok=True)
    root = cache / name
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            _build_root(root, suite, wanted)
    return root


def _build_root(root: Path, suite: str, packages: list[str]) -> None:
    """Build beside the final place and rename, so that an interrupted build is never taken for a root."""
    new = root.with_name(f"{root.name}.new")
    with suppress(FileNotFoundError):
        shutil.rmtree(new)
    excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in WITHOUT]
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={','.join(packages)}",
        *excluded,
        *(["--components=main,universe"] if suite in UBUNTU else []),
        suite,
        str(new),
    ]
    done = subprocess.run(command, text=True, capture_output=True, timeout=BUILD_S_MAX, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-2000:]}")
    new.rename(root)


class Container:
    """One container over a cached root. `directory` holds its writable layer, keys and log."""

    def __init__(
        self,
        directory: Path,
        packages: tuple[str, ...] = (),
        address: str = LOOPBACK,
        options: tuple[str, ...] = (),
        suite: str = "",
    ) -> None:
        """Choose the places; nothing is started. `options` are systemd-nspawn's, beside those that each container gets."""
        self.directory, self.packages = directory, packages
        self.address, self.options, self.suite = address, options, suite
        (self.port,) = free_ports(1)
        self.root = directory / "root"
        self._layers = directory / "layers"
        self._key, self._known_hosts = directory / "key", directory / "known_hosts"
        self._log = directory / "console.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Boot, and return when a command over SSH succeeds."""
        self._mount()
        self._set_up_ssh()
        # On a host without systemd there is no unit to make: the container then stays in the caller's cgroup.
        keep = [] if Path("/run/systemd/system").is_dir() else ["--keep-unit"]
        command = ["systemd-nspawn", "--quiet", "--register=no", *keep, "--boot", f"--directory={self.root}"]
        command += [f"--machine=bench-{self.port}", "--console=read-only", *self.options]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def _mount(self) -> None:
        """Lay a writable layer over the cached root, on tmpfs: the tests' own folder may lie on an overlay already."""
        for folder in (self.root, self._layers):
            folder.mkdir(parents=True)
        _run("mount", "-t", "tmpfs", "-o", "mode=0755", "bench-nspawn", str(self._layers))
        for name in ("upper", "work"):
            (self._layers / name).mkdir()
        options = f"lowerdir={cached_root(self.packages, self.suite)},upperdir={self._layers}/upper,workdir={self._layers}/work"
        _run("mount", "-t", "overlay", "-o", options, "bench-nspawn", str(self.root))

    def _set_up_ssh(self) -> None:
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._key))
        authorized = self.root / "root/.ssh/authorized_keys"
        authorized.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(f"{self._key}.pub", authorized)
        (self.root / "etc/ssh/sshd_config.d/bench.conf").write_text(SSHD.format(port=self.port, address=self.address))
        host_key = (self.root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
        self._known_hosts.write_text(f"[{self.address}]:{self.port} {host_key[0]} {host_key[1]}\n")

    def _wait_ready(self) -> None:
        until_s = time.monotonic() + START_S_MAX
        answer = self.ssh("true")
        while answer.returncode != 0:
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > until_s:
                console = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the container did not answer at port {self.port}: {answer.stderr}\n{console}")
            time.sleep(0.2)
            answer = self.ssh("true")

    @property
    def pid(self) -> int:
        """Return the host's number of the process that holds the container; all of the container's descend from it."""
        if self._process is None:
            raise RuntimeError(f"the container in {self.directory} does not run")
        return self._process.pid

    @property
    def ssh_arguments(self) -> list[str]:
        """Return the options for ssh that reach the container and trust its key alone."""
        return [
            *("-i", str(self._key), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
            *("-o", f"UserKnownHostsFile={self._known_hosts}", "-o", "ConnectTimeout=5"),
        ]

    def ssh(self, command: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a shell command in the container."""
        argv = ["ssh", *self.ssh_arguments, "-p", str(self.port), f"root@{self.address}", command]
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=timeout_s, check=False
        )

    def inventory(self) -> dict[str, Any]:
        """Return an inventory's entry for this host."""
        return {
            "ansible_host": self.address,
            "ansible_port": self.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self._key),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile='{self._known_hosts}' -o StrictHostKeyChecking=yes",
            "ansible_python_interpreter": "/usr/bin/python3",
        }

    def stop(self) -> None:
        """End the container and unmount. May be called twice."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)  # nspawn passes it on as an orderly shutdown
            try:
                self._process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
        for place in (self.root, self._layers):
            if place.is_mount():
                _run("umount", str(place))


def _run(*command: str) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")


@contextmanager
def container(directory: Path, packages: tuple[str, ...] = (), suite: str = "") -> Iterator[Container]:
    """Run a container for as long as the block lasts."""
    made = Container(directory, packages, suite=suite)
    try:
        made.start()
        yield made
    finally:
        made.stop()
