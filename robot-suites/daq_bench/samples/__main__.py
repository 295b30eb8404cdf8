"""`make samples`: one of each document from simulated servers, and docs/samples.md with their first pages."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.samples import documents, gallery
from daq_bench.samples.servers import Laboratory

OUT = REPOSITORY / "build" / "samples"
OURS = "daq-bench-samples"  # a file of every folder that this command made: only such a folder is replaced
WRONG = 1


def main() -> int:
    parser = Parser(prog="samples", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=OUT, metavar="DIR", help=f"folder for the documents (default {OUT.name})"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    chosen = parser.parse_args()
    try:
        return _make(chosen.output, chosen.jobs)
    except (BenchError, OSError) as error:
        print(f"samples: {in_words(error)}", file=sys.stderr)
        return WRONG


def _make(out: Path, jobs: int) -> int:
    if jobs < 1:
        raise BenchError(f"--jobs {jobs}: 1 or more was expected")
    tools = gallery.Tools.found()
    if out.exists():
        if not (out / OURS).is_file():
            raise BenchError(f"{out}: is no folder of samples, and is not replaced. Name another with OUT=DIR")
        shutil.rmtree(out)
    out.mkdir(parents=True)
    (out / OURS).touch()
    with tempfile.TemporaryDirectory(prefix="samples-") as folder:
        samples = []
        for one in documents.make(Laboratory(Path(folder), jobs), out):
            print(f"{one.title}: {one.shown}", flush=True)
            samples.append(one)
        gallery.write(samples, tools)
    print(f"{gallery.PAGE.relative_to(REPOSITORY)}: {len(samples)} documents")
    return 0


if __name__ == "__main__":
    sys.exit(main())
