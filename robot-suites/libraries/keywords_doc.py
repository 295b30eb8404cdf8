"""Writes libdoc's page of every keyword library: `keywords_doc.py FOLDER`; the shipped suites' library gets one for each workload."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from robot.libdocpkg import LibraryDocumentation
from robot.libdocpkg.model import LibraryDoc

from daq_bench.rig.workloads.registry import WORKLOADS

HERE = Path(__file__).resolve().parent
NO_BUNDLE = "runs/latest"  # nothing is opened before a keyword runs


def libraries() -> Iterator[tuple[str, LibraryDoc]]:
    """Name of the page, and the library's documentation. The first is the one for suites of one's own."""
    yield "DaqBench", LibraryDocumentation("DaqBench")
    yield "identity", LibraryDocumentation(f"{HERE / 'IdentityKeywords.py'}::{NO_BUNDLE}")
    for name in WORKLOADS:
        found = LibraryDocumentation(f"{HERE / 'WorkloadKeywords.py'}::{NO_BUNDLE}::{name}")
        found.name = f"WorkloadKeywords of {name}"
        yield name, found


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in libraries():
        found.save(folder / f"{name}.html", "HTML")
        print(folder / f"{name}.html")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: keywords_doc.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
