"""Settings that systemd keeps, addressed like files: `systemd:property:UNIT:NAME`, `systemd:service:NAME` and `systemd:unit:NAME`.

A property is set until the next reboot only (`systemctl set-property --runtime`); a service's value is `running` or
`stopped`, read from the processes themselves, so that one started by other means counts too. A unit's value is the same as systemd
says it of `NAME.service`, which may have done its work and run no process any more; one that is not there is stopped.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import subprocess

from ansible.module_utils.bench_cpus import format_cpus, parse_cpus

PREFIX = "systemd:"
BOOTED_BY_SYSTEMD = "/run/systemd/system"  # sd_booted(3)
CONTROLLERS = "/sys/fs/cgroup/cgroup.controllers"  # there with cgroup v2 alone
ALL_CPUS = "all"  # systemd's own word for no limit is an empty text
COMMAND_S_MAX = 60
PROCESS_NAME_CHARACTERS = 15  # that the kernel keeps


def is_address(path: str) -> bool:
    """Says whether a path is one of systemd's settings rather than a file."""
    return path.startswith(PREFIX)


def systemctl(*arguments: str) -> str:
    """Run systemctl; OSError has its complaint."""
    command = shutil.which("systemctl")
    if command is None:
        raise OSError(errno.ENOENT, "systemctl is not there: this machine is not run by systemd")
    done = subprocess.run(
        [command, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise OSError(errno.EIO, f"systemctl {' '.join(arguments)}: {said or f'exit status {done.returncode}'}")
    return done.stdout.strip()


def exists(address: str) -> bool:
    """Says whether this machine has the setting. A service that is not there is not running, so that it can be asked."""
    if address.split(":")[1] in ("service", "unit"):
        return True
    if not os.path.isdir(BOOTED_BY_SYSTEMD) or not os.path.exists(CONTROLLERS):
        return False
    with open(CONTROLLERS, encoding="ascii") as stream:
        return "cpuset" in stream.read().split()


def runs(name: str) -> bool:
    """Says whether a process of that name runs."""
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                if stream.read().strip() == name[:PROCESS_NAME_CHARACTERS]:
                    return True
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
    return False


def read(address: str) -> str:
    """Return the value; lists of CPUs in the kernel's spelling."""
    _prefix, kind, *names = address.split(":")
    if kind == "service":
        return "running" if runs(names[0]) else "stopped"
    if kind == "unit":
        if not os.path.isdir(BOOTED_BY_SYSTEMD):
            return "stopped"
        state = systemctl("show", "--property", "ActiveState", "--value", f"{names[0]}.service")
        return "stopped" if state in ("inactive", "failed", "deactivating") else "running"
    unit, name = names
    value = systemctl("show", "--property", name, "--value", unit)
    return (format_cpus(parse_cpus(value)) or ALL_CPUS) if name.endswith("CPUs") else value


def write(address: str, value: str) -> None:
    """Set the value; OSError is systemd's refusal."""
    _prefix, kind, *names = address.split(":")
    if kind in ("service", "unit"):
        systemctl("stop" if value == "stopped" else "start", f"{names[0]}.service")
        return
    unit, name = names
    systemctl("set-property", "--runtime", unit, f"{name}={'' if value == ALL_CPUS else value}")
