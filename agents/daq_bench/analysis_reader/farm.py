"""A farm on Dask: nodes of several workers each, every node with its own CPUs and its own share of the files (PROOF: data stay local).

All of it runs on this machine over loopback; a node is a group of `dask worker` processes that is confined to its CPUs. Every process
ends with this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client, wait
from distributed import TimeoutError as NotYetError

from daq_bench.analysis_reader import device
from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.point import result_of
from daq_bench.analysis_reader.reading import Usage, read_file
from daq_bench.analysis_reader.tally import Tally

UNTIL_PARENT_DIES = ["setpriv", "--pdeathsig", "KILL", "--"]
READY_S = 90.0
CHECK_S = 1.0


@dataclass(frozen=True)
class Node:
    """`cpus`: those that the node's workers may use; `files`: its share."""

    name: str
    workers: int
    cpus: tuple[int, ...]
    files: tuple[Path, ...]


def nodes_of(files: Sequence[Path], nodes: int, workers: int, cpus: Sequence[int]) -> list[Node]:
    """Files and CPUs dealt out in turn. Raises ReaderError where a node would have none."""
    if nodes < 2 or len(cpus) < nodes or len(files) < nodes:
        raise ReaderError(
            f"{nodes} nodes with {len(cpus)} CPUs and {len(files)} files: every node needs one of each, and a farm two nodes"
        )
    return [
        Node(f"node{number}", workers, tuple(cpus[number::nodes]), tuple(files[number::nodes]))
        for number in range(nodes)
    ]


def task(path: str, analysis: str) -> tuple[dict[str, Any], Tally]:
    """Reads one file on a worker; returns (record, tally)."""
    usage = Usage()
    found = read_file(Path(path), analysis)
    record = {"file": Path(path).name, "entries": found["tally"].entries, **usage.so_far()}
    return {**record, **{key: found[key] for key in ("fetched_bytes", "requests", "fits")}}, found["tally"]


def _start(argv: list[str], log: Path, cpus: Sequence[int] | None = None) -> subprocess.Popen[bytes]:
    confined = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s",
        "DASK_TEMPORARY_DIRECTORY": str(log.parent),
    }
    with log.open("wb") as file:
        return subprocess.Popen(
            [*UNTIL_PARENT_DIES, *confined, sys.executable, "-m", "distributed.cli." + argv[0], *argv[1:]],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment,
        )  # fmt: skip


class Farm:
    """A scheduler and the nodes' workers, all processes of this one, with their files in `work`. Made by `farm`."""

    def __init__(self, work: Path) -> None:
        self._work, self._address = work, work / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.addresses: dict[str, list[str]] = {}

    def start(self, nodes: Sequence[Node]) -> None:
        """Raises ReaderError when the scheduler is not ready in time."""
        options = ["--host=127.0.0.1", "--port=0", "--no-dashboard", "--no-show", f"--scheduler-file={self._address}"]
        self.processes.append(_start(["dask_scheduler", *options], self._work / "scheduler.log"))
        self._until(self._address.exists, "Dask's scheduler was")
        for node in nodes:
            for number in range(node.workers):
                name = f"{node.name}-{number}"
                options = [
                    f"--scheduler-file={self._address}", "--host=127.0.0.1", f"--name={name}", "--nthreads=1", "--no-nanny",
                    "--no-dashboard", "--memory-limit=0", f"--local-directory={self._work / name}", "--death-timeout=60",
                ]  # fmt: skip
                self.processes.append(_start(["dask_worker", *options], self._work / f"{name}.log", node.cpus))

    def connect(self, client: Client, nodes: Sequence[Node]) -> None:
        """Waits for all workers, and has them import what they need. Raises ReaderError."""
        self.client, wanted = client, sum(node.workers for node in nodes)
        self._until(lambda: len(self._known()) == wanted, f"not all of {wanted} Dask workers were")
        for node in nodes:
            own = [address for address, one in self._known().items() if str(one["name"]).startswith(f"{node.name}-")]
            self.addresses[node.name] = own
        every = [address for own in self.addresses.values() for address in own]
        client.gather([client.submit(_warm, number, workers=[one], pure=False) for number, one in enumerate(every)])

    def _known(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
        return found

    def _until(self, ready: Callable[[], bool], what: str) -> None:
        until_s = time.monotonic() + READY_S
        while not ready():
            self.check()
            if time.monotonic() > until_s:
                raise ReaderError(f"{what} not ready within {READY_S:.0f} s. Free memory and CPUs")
            time.sleep(0.05)

    def check(self) -> None:
        """Raises ReaderError when a process has ended: Dask would give its files to another one, or wait for ever."""
        for process in self.processes:
            if process.poll() is not None:
                logs = [log.read_text(errors="replace").splitlines()[-2:] for log in self._work.glob("*.log")]
                said = " / ".join(line for lines in logs for line in lines)[-600:]
                raise ReaderError(
                    f"a process of the Dask farm (pid {process.pid}) died with exit status {process.returncode}: the farm has no result. "
                    f"Look for a lack of memory (dmesg), and measure again. It said: {said}"
                )

    def run(self, nodes: Sequence[Node], analysis: str, devices: list[str], drop_caches: bool) -> dict[str, Any]:
        """Runs these nodes at the same time, each on its own files, from handing out the first task to having all results.

        Raises ReaderError that names the file or the process."""
        device.forget([path for node in nodes for path in node.files], drop_caches)
        before, start_s = device.read_bytes(devices), time.monotonic()
        owners = [(node, path) for node in nodes for path in node.files]
        futures = [
            self.client.submit(task, str(path), analysis, workers=self.addresses[node.name], pure=False)
            for node, path in owners
        ]
        answers = self._answers(futures)
        elapsed_s, after, found = time.monotonic() - start_s, device.read_bytes(devices), Tally()
        for _, tally in answers:
            found.add(tally)
        return {
            "nodes": [node.name for node in nodes],
            "elapsed_s": elapsed_s,
            "devices": [{"name": name, "read_bytes": after[name] - before[name]} for name in devices],
            "records": [{"node": node.name, **record} for (node, _), (record, _) in zip(owners, answers, strict=True)],
            "result": result_of(found, analysis),
        }

    def _answers(self, futures: list[Any]) -> list[Any]:
        pending = True
        while pending:
            try:
                wait(futures, timeout=CHECK_S)
                pending = False
            except NotYetError:
                self.check()
        self.check()
        try:
            found: list[Any] = self.client.gather(futures)
        except ReaderError:
            raise
        except Exception as error:  # Dask reports a lost worker in several ways
            raise ReaderError(f"the farm lost a task: {type(error).__name__}: {error}") from None
        return found


def _warm(number: int) -> int:
    """Imports what a task needs, before anything is timed."""
    return number if callable(read_file) else -1


@contextmanager
def farm(nodes: Sequence[Node], work: Path) -> Iterator[Farm]:
    """`work`: an empty folder for Dask's own files, its content removed afterwards. Every process ends with the block."""
    made = Farm(work)
    try:
        made.start(nodes)
        with (
            dask.config.set({"temporary-directory": str(work)}),
            Client(scheduler_file=str(work / "scheduler.json"), timeout=READY_S) as client,
        ):
            made.connect(client, nodes)
            yield made
    finally:
        for process in made.processes:
            process.kill()
            process.wait()
        for path in sorted(work.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
