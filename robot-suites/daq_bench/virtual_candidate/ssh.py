"""The instance's SSH: its keys, and commands on the guest."""

from __future__ import annotations

import shlex
import socket
import subprocess
import time
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.whole_files import replace_file

BANNER_S_MAX = 3.0


def create_keys(folder: Path, port: int) -> None:
    """Makes the user's key, the guest's host key, and a known_hosts file that trusts exactly that one."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("id_ed25519", "host_ed25519_key"):
        (folder / name).unlink(missing_ok=True)
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "virtual-candidate", "-f", str(folder / name)]
        subprocess.run(argv, check=True, capture_output=True, timeout=60)
    kind, key, _ = (folder / "host_ed25519_key.pub").read_text(encoding="ascii").split()
    replace_file(folder / "known_hosts", f"[127.0.0.1]:{port} {kind} {key}\n")


def command(folder: Path, port: int, *words: str) -> list[str]:
    """The argv of ssh for the guest; `words` are its options or the remote command."""
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "10",
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": shlex.quote(str(folder / "known_hosts")),
    }
    chosen = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "none", "-i", str(folder / "id_ed25519"), "-p", str(port), *chosen, "root@127.0.0.1", *words]


def run(folder: Path, port: int, remote: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a shell command on the guest to its end."""
    argv = command(folder, port, remote)
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def wait(folder: Path, port: int, timeout_s: float, is_alive: Path, log: Path) -> None:
    """Returns when a login works. Raises BenchError after `timeout_s`, or as soon as the file `is_alive` is gone."""
    deadline = time.monotonic() + timeout_s
    said = "no banner from its SSH server"
    while time.monotonic() < deadline and is_alive.exists():
        if _banner(port):
            try:
                done = run(folder, port, "true", timeout_s=20)
            except subprocess.TimeoutExpired:
                continue
            if done.returncode == 0:
                return
            said = done.stderr.strip()
        time.sleep(0.1)
    raise BenchError(f"the guest did not let anybody in within {timeout_s:.0f} s: {said}. Its console is in {log}")


def _banner(port: int) -> bool:
    """True if the guest's SSH server greets: QEMU's user network accepts connections before that server exists."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=BANNER_S_MAX) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
