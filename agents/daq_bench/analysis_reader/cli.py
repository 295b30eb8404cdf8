"""`analysis_reader COMMAND`: generate a set of ROOT files, measure points, a slow disk, a farm. Each leaves one JSON document in --json.

Exit status: 0 done; 1 it could not be done, one sentence on stderr; 2 bad arguments; 143 and 130 ended by SIGTERM and SIGINT."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import awkward
import numpy
import uproot

from daq_bench.analysis_reader import dataset, point
from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.shape import FULL, RNTUPLE, SPARSE, TTREE, Shape
from daq_bench.analysis_reader.slow_disk import Limits, held, slow_disk

FILESYSTEM_BYTES = 64 << 20  # that ext4 keeps for itself on a small disk
DISK_MARGIN = 1.1


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="analysis_reader", description=__doc__, allow_abbrev=False)
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        one.add_argument("--set", type=Path, required=True, metavar="FOLDER", help="folder of the set of ROOT files")
        one.add_argument("--json", type=Path, required=True, metavar="FILE", help="where the result goes")
        return one

    make = command("generate", "write a set with a known truth; FOLDER must be new")
    make.add_argument("--kind", choices=(SPARSE, FULL), required=True)
    make.add_argument("--layout", choices=(TTREE, RNTUPLE), default=TTREE)
    make.add_argument(
        "--compression", default="zlib-1", help="none, or zlib, lz4, zstd, lzma with a level: zlib-1 (default)"
    )
    make.add_argument("--seed", type=int, required=True)
    make.add_argument("--processes", type=int, default=1)
    for name, text in (
        ("events", "events of all files together"), ("files", "files"), ("event-bytes", "mean size of an event in memory, B"),
        ("cluster-events", "events of a cluster, which is what a basket of each variable holds"),
    ):  # fmt: skip
        make.add_argument(f"--{name}", type=int, required=True, help=text)
    one = command("points", "N workers over the whole set once, with a cold cache, for each N")
    one.add_argument("--workers", type=_numbers, required=True, metavar="N,N,...", help="one point each, in this order")
    slow = command("slow-disk", "points on a loop device that is held back; needs root")
    slow.add_argument(
        "--image", type=Path, required=True, metavar="FILE", help="image of the disk: a new file, removed afterwards"
    )
    slow.add_argument("--read-iops", type=int, required=True, help="read requests per second")
    slow.add_argument("--read-bytes-per-s", type=int, required=True, help="B/s")
    slow.add_argument("--workers", type=_numbers, required=True, metavar="N,N,...", help="one point each")
    slow.add_argument("--repetitions", type=int, default=1)
    dask = command("farm", "nodes on Dask: each alone, and all at the same time, in alternating order")
    dask.add_argument("--nodes", type=int, required=True)
    dask.add_argument("--workers", type=int, required=True, help="of each node")
    dask.add_argument("--rounds", type=int, required=True)
    dask.add_argument(
        "--cpus", type=_numbers, required=True, metavar="N,N,...", help="CPUs that are dealt out to the nodes"
    )
    for each in (one, slow, dask):
        each.add_argument("--analysis", choices=(SPARSE, FULL), required=True)
        each.add_argument(
            "--drop-caches",
            action="store_true",
            help="empty the whole page cache too, not only the set's files; needs root",
        )
    for each in (one, dask):
        each.add_argument(
            "--device", action="append", default=[], help="kernel name of a drive or array beneath; may be repeated"
        )
    return top


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def versions() -> dict[str, str]:
    return {
        "uproot": uproot.__version__,
        "awkward": awkward.__version__,
        "numpy": numpy.__version__,
        "python": sys.version.split()[0],
    }


def _files(folder: Path) -> list[Path]:
    return [folder / entry["name"] for entry in dataset.load(folder)["files"]]


def generate(options: argparse.Namespace) -> dict[str, Any]:
    for name in ("events", "files", "event_bytes", "cluster_events", "processes"):
        if getattr(options, name) < 1:
            raise ReaderError(f"--{name.replace('_', '-')} {getattr(options, name)}: give 1 or more")
    shape = Shape(
        options.kind, options.layout, options.events, options.files, options.event_bytes, options.cluster_events, options.compression,
        options.seed,
    )  # fmt: skip
    if shape.events < shape.files:
        raise ReaderError(f"--files {shape.files}: there are {shape.events} events. Give fewer files, or more events")
    return {**dataset.generate(options.set, shape, options.processes), "versions": versions()}


def some_points(options: argparse.Namespace) -> dict[str, Any]:
    files = _files(options.set)
    points = [
        point.measure(files, options.analysis, workers, options.device, options.drop_caches)
        for workers in options.workers
    ]
    return {"schema_version": 1, "points": points}


def slow_points(options: argparse.Namespace) -> dict[str, Any]:
    """Measures every number of workers in turn, upwards in one repetition and downwards in the next."""
    listed, limits = dataset.load(options.set), Limits(options.read_iops, options.read_bytes_per_s)
    points = []
    with slow_disk(options.image, FILESYSTEM_BYTES + int(DISK_MARGIN * listed["bytes"])) as (name, folder):
        dataset.copy(options.set, folder / "set")
        with held(name, limits) as controller:
            for repetition in range(1, options.repetitions + 1):
                for workers in options.workers if repetition % 2 else reversed(options.workers):
                    files = _files(folder / "set")
                    found = point.measure(files, options.analysis, workers, [name], options.drop_caches)
                    points.append({**found, "repetition": repetition})
    return {"schema_version": 1, "controller": controller, "limits": vars(limits), "points": points}


def farm_rounds(options: argparse.Namespace) -> dict[str, Any]:
    """Measures in every round each node alone, then all together; the other way round in the next."""
    from daq_bench.analysis_reader import farm  # Dask takes a second to import, and nothing else needs it

    nodes = farm.nodes_of(_files(options.set), options.nodes, options.workers, options.cpus)
    rounds = []
    with (
        tempfile.TemporaryDirectory(prefix="daq-bench-farm-") as work,
        farm.farm(nodes, Path(work)) as made,
    ):
        for number in range(1, options.rounds + 1):
            groups = [*([node] for node in nodes), list(nodes)]
            runs = [
                made.run(group, options.analysis, options.device, options.drop_caches)
                for group in (groups if number % 2 else groups[::-1])
            ]
            rounds.append({"round": number, "alone_first": number % 2 == 1, "runs": runs})
    cpus = [
        {"name": node.name, "workers": node.workers, "cpus": list(node.cpus), "files": len(node.files)}
        for node in nodes
    ]
    return {"schema_version": 1, "analysis": options.analysis, "nodes": cpus, "rounds": rounds}


COMMANDS = {"generate": generate, "points": some_points, "slow-disk": slow_points, "farm": farm_rounds}


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    options = parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        document = COMMANDS[options.command](options)
        partial = options.json.with_suffix(".partial")
        partial.write_text(json.dumps(document), encoding="utf-8")
        partial.replace(options.json)
    except ReaderError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or options.set}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0
