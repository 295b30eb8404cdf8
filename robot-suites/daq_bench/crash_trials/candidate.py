"""A light candidate: a real systemd and sshd in a container with a network, a drive and a kernel setting of its own. Needs root.

The drive is a loop device with ext4 over a file of the control node, so that faults can be injected below it. The queue's scheduler is a
real setting of that device; fs.aio-max-nr, which the kernel has but once, is a private file, so that candidates do not tune each other."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nspawn import Container, missing_requirement

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.on_candidate.network.namespaces import remove_left_behind, tool

PACKAGES = ("fio", "xfsprogs", "smartmontools")
LETTERS = "ct"
DIRECTORY, DRIVE_BYTES = Path("/srv/bench"), 1536 * 2**20
BEFORE = {"aio_max_nr": "65536", "queue_scheduler": "none"}
TUNING: dict[str, Any] = {"aio_max_nr": 1048576, "queue_scheduler": "mq-deadline"}
ENTRIES_MAX = 64
REACHED_S_MAX = 30.0


def missing() -> str:
    """The reason why this machine cannot have light candidates; empty when it can."""
    absent = [
        one for one in ("losetup", "mkfs.ext4") if not any((Path(at) / one).exists() for at in ("/sbin", "/usr/sbin"))
    ]
    if not Path("/dev/loop-control").exists():
        absent.append("loop devices")
    return missing_requirement() or (f"{', '.join(absent)} not there" if absent else "")


class LightCandidate:
    """`number` tells the candidates of this process apart. `suite`: the system's, or this machine's. Made by `light_candidates`."""

    def __init__(self, folder: Path, number: int, suite: str = "") -> None:
        self.name = f"light-{os.getpid()}-{number}"
        self.folder, self.number, self.suite = folder, number, suite
        self.backing = folder / "drive.img"
        self.loop = ""
        pid = os.getpid()
        self.namespace, self.link = f"{LETTERS}{pid}n{number}", f"{LETTERS}{pid}h{number}"
        # 198.18.0.0/15 is for such tests (RFC 2544); the pair is of this process and number.
        place = (pid * ENTRIES_MAX + number) % 2**15
        base = (198 << 24) + (18 << 16) + 4 * place
        self._network, self._ours, self.address = (
            ".".join(str(base + one >> shift & 255) for shift in (24, 16, 8, 0)) for one in (0, 1, 2)
        )
        self.container: Container = None  # type: ignore[assignment] # `start` makes it

    def start(self) -> None:
        """Returns when a command over SSH succeeds and the drive is mounted."""
        self.folder.mkdir(parents=True)
        tool("ip", "netns", "add", self.namespace)
        tool("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        tool("ip", "address", "add", f"{self._ours}/30", "dev", self.link)
        tool("ip", "-n", self.namespace, "address", "add", f"{self.address}/30", "dev", "eth0")
        for words in ((self.link,), ("eth0", "-n", self.namespace), ("lo", "-n", self.namespace)):
            tool("ip", *words[1:], "link", "set", words[0], "up")
        tool(
            "ip", "route", "add", "blackhole", f"{self._network}/30", "metric", "4000"
        )  # for when the link is not there
        self._plug_in()
        # With the drive's file, so that the bench sees what the drive lies on.
        seen = (f"--bind={self.loop}", f"--bind-ro={self.backing}")
        options = (f"--network-namespace-path=/run/netns/{self.namespace}", *seen)
        self.container = Container(self.folder / "container", PACKAGES, self.address, options, self.suite)
        self.container.start()
        # The kernel's settings are writable, and the one that all candidates would share is this candidate's alone.
        self.command(
            f"mount -o remount,rw /sys && mount -o remount,rw /proc/sys && echo {BEFORE['aio_max_nr']} > /run/aio-max-nr"
            f" && mount --bind /run/aio-max-nr /proc/sys/fs/aio-max-nr && mkdir -p {DIRECTORY} && mount {self.loop} {DIRECTORY}"
            f" && rmdir {DIRECTORY}/lost+found"
        )

    def _plug_in(self) -> None:
        with self.backing.open("wb") as file:
            file.truncate(DRIVE_BYTES)
        self.loop = tool("losetup", "--find", "--show", "--direct-io=on", str(self.backing)).strip()
        tool("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=1", self.loop)
        self.scheduler_file.write_text(BEFORE["queue_scheduler"], encoding="ascii")

    @property
    def scheduler_file(self) -> Path:
        return Path("/sys/block") / Path(self.loop).name / "queue/scheduler"

    @property
    def root(self) -> Path:
        """The candidate's files, seen from here."""
        return self.container.root

    def command(self, text: str, timeout_s: float = 60.0) -> str:
        """Runs a shell command as root on the candidate. Raises BenchError when it fails."""
        done = self.container.ssh(text, timeout_s)
        if done.returncode != 0:
            raise BenchError(f"{self.name}: {text}: exit status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def settings(self) -> dict[str, str]:
        """Returns what the kernel has of the settings that the bench tunes."""
        chosen = self.scheduler_file.read_text(encoding="ascii").partition("[")[2].partition("]")[0]
        return {"aio_max_nr": self.command("cat /proc/sys/fs/aio-max-nr").strip(), "queue_scheduler": chosen}

    def cut(self, *, off: bool) -> None:
        """Takes the network away, or gives it back: at the candidate's end, so that nothing that is sent there goes elsewhere.

        Returns when that is so: the kernel remembers for some seconds that the candidate did not answer. Raises BenchError."""
        tool("ip", "-n", self.namespace, "link", "set", "eth0", "down" if off else "up")
        until = time.monotonic() + REACHED_S_MAX
        while not off and self.container.ssh("true", REACHED_S_MAX).returncode != 0:
            if time.monotonic() > until:
                raise BenchError(f"{self.name} is not reached again within {REACHED_S_MAX:.0f} s")
            time.sleep(0.5)

    def entry(self, **more: Any) -> dict[str, Any]:
        """The inventory's entry."""
        bench = {
            "description": "A container with a loop device, for trials of the bench itself",
            "identity": {"architectures": ["x86_64", "aarch64"], "cpus_min": 1, "memory_min": "1GiB"},
            "target": {"kind": "filesystem", "directory": str(DIRECTORY)},
            "transient_buffer": "256MiB",
            "tuning": TUNING,
            **more,
        }
        return {**self.container.inventory(), "bench_candidate": bench}

    def stop(self) -> None:
        """Ends the container and takes its drive and network away. May be called twice."""
        if self.container is not None:
            self.container.stop()
        if self.loop:
            subprocess.run(["losetup", "--detach", self.loop], check=True)
            self.loop = ""
            self.backing.unlink()
        blackhole = ("route", "del", "blackhole", f"{self._network}/30", "metric", "4000")
        for words in (("link", "del", self.link), ("netns", "del", self.namespace), blackhole):
            tool("ip", *words, check=False)


@contextmanager
def light_candidates(folder: Path, count: int, suite: str = "") -> Iterator[list[LightCandidate]]:
    """Candidates for as long as the block lasts; removes first what a killed campaign has left of its networks."""
    remove_left_behind(LETTERS)
    made = [LightCandidate(folder / f"light-{number}", number, suite) for number in range(count)]
    try:
        for one in made:
            one.start()
        yield made
    finally:
        for one in made:
            one.stop()
