"""A farm on Dask: nodes of several workers each, every node with its own CPUs and its own share of the files (PROOF: data stay local).

All of it runs on this machine over loopback; a node is a group of `dask worker` processes that is confined to its CPUs. Every process
ends with this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client

from analysis_reader import device
from analysis_reader.errors import ReaderError
from analysis_reader.point import result_of
from analysis_reader.reading import Usage, read_file
from analysis_reader.tally import Tally

UNTIL_PARENT_DIES = ["setpriv", "--pdeathsig", "KILL", "--"]
READY_S = 90.0


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
    """What a worker does with one file: (record, tally)."""
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


@contextmanager
def farm(nodes: Sequence[Node], work: Path) -> Iterator[tuple[Client, dict[str, list[str]]]]:
    """(client, addresses of each node's workers); `work`: an empty folder for Dask's own files, its content removed afterwards."""
    address, processes = work / "scheduler.json", []
    try:
        processes.append(
            _start(
                [
                    "dask_scheduler",
                    "--host=127.0.0.1",
                    "--port=0",
                    "--no-dashboard",
                    "--no-show",
                    f"--scheduler-file={address}",
                ],
                work / "scheduler.log",
            )
        )
        _wait_for(address, processes, work)
        for node in nodes:
            for number in range(node.workers):
                name = f"{node.name}-{number}"
                processes.append(
                    _start(
                        [
                            "dask_worker", f"--scheduler-file={address}", "--host=127.0.0.1", f"--name={name}", "--nthreads=1",
                            "--no-nanny", "--no-dashboard", "--memory-limit=0", f"--local-directory={work / name}", "--death-timeout=60",
                        ],
                        work / f"{name}.log", node.cpus,
                    )
                )  # fmt: skip
        with (
            dask.config.set({"temporary-directory": str(work)}),
            Client(scheduler_file=str(address), timeout=READY_S, set_as_default=False) as client,
        ):
            yield client, _addresses(client, nodes, processes, work)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        _clear(work)


def _clear(work: Path) -> None:
    for path in sorted(work.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def _alive(processes: Sequence[subprocess.Popen[bytes]], work: Path) -> None:
    for process in processes:
        if process.poll() is not None:
            logs = [line for log in work.glob("*.log") for line in log.read_text(errors="replace").splitlines()[-2:]]
            raise ReaderError(
                f"a process of the Dask farm ended with exit status {process.returncode}: {' / '.join(logs)[-600:]}"
            )


def _wait_for(file: Path, processes: Sequence[subprocess.Popen[bytes]], work: Path) -> None:
    until_s = time.monotonic() + READY_S
    while not file.exists():
        _alive(processes, work)
        if time.monotonic() > until_s:
            raise ReaderError(f"Dask's scheduler was not ready within {READY_S:.0f} s. Free memory and CPUs")
        time.sleep(0.05)


def _addresses(
    client: Client, nodes: Sequence[Node], processes: Sequence[subprocess.Popen[bytes]], work: Path
) -> dict[str, list[str]]:
    wanted, until_s = sum(node.workers for node in nodes), time.monotonic() + READY_S
    while True:
        known = client.scheduler_info(n_workers=-1)["workers"]
        if len(known) == wanted:
            break
        _alive(processes, work)
        if time.monotonic() > until_s:
            raise ReaderError(
                f"{len(known)} of {wanted} Dask workers were ready within {READY_S:.0f} s. Free memory and CPUs"
            )
        time.sleep(0.1)
    found = {
        node.name: [address for address, one in known.items() if str(one["name"]).startswith(f"{node.name}-")]
        for node in nodes
    }
    # Imported before anything is timed.
    client.gather([client.submit(_warm, number, workers=[one], pure=False) for number, one in enumerate(known)])
    return found


def _warm(number: int) -> int:
    return number if callable(read_file) else -1


def run(
    client: Client,
    nodes: Sequence[Node],
    addresses: dict[str, list[str]],
    analysis: str,
    devices: list[str],
    drop_caches: bool,
) -> dict[str, Any]:
    """These nodes at the same time, each on its own files; from handing out the first task to having all results. Raises ReaderError."""
    files = [path for node in nodes for path in node.files]
    device.forget(files, drop_caches)
    before, start_s = device.read_bytes(devices), time.monotonic()
    futures, owners = [], []
    for place in range(max(len(node.files) for node in nodes)):
        for node in nodes:
            if place < len(node.files):
                futures.append(
                    client.submit(
                        task, str(node.files[place]), analysis, workers=addresses[node.name], pure=False, retries=0
                    )
                )
                owners.append(node.name)
    try:
        answers = client.gather(futures)
    except ReaderError:
        raise
    except Exception as error:  # whatever Dask makes of a lost worker
        raise ReaderError(f"the farm lost a task: {type(error).__name__}: {error}") from None
    elapsed_s, after, found = time.monotonic() - start_s, device.read_bytes(devices), Tally()
    for _, tally in answers:
        found.add(tally)
    return {
        "nodes": [node.name for node in nodes],
        "elapsed_s": elapsed_s,
        "devices": [{"name": name, "read_bytes": after[name] - before[name]} for name in devices],
        "records": [{"node": owner, **record} for owner, (record, _) in zip(owners, answers, strict=False)],
        "result": result_of(found, analysis),
    }
