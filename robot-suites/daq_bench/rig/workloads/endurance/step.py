"""One step of the wear experiment: an exact amount of writing with fio, in one file or at the begin of a raw drive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.results import WearExperiment, WearKind
from daq_bench.bench_model.documents.run import Drive
from daq_bench.rig.candidate.load_target import LoadTarget
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.fio_job import JobFiles, Value

FILE = "endurance.bin"
SLOWEST_BYTES_PER_S = 2e6  # random writes to a slow drive: bounds the wait for a step


@dataclass(frozen=True)
class Step:
    """One piece of writing. `sequential_bytes` and `random_bytes` are written at the same time, from `offset_bytes` on."""

    kind: WearKind  # "fill": the file is written once, so that all that follows overwrites; "mix": the pattern
    sequential_bytes: int
    random_bytes: int
    offset_bytes: int

    @property
    def asked_bytes(self) -> int:
        return self.sequential_bytes + self.random_bytes


@dataclass(frozen=True)
class Plan:
    """Everything that the experiment needs. `copies`: writes per byte."""

    parameters: dict[str, Any]
    seed: int
    target: LoadTarget
    jobs: JobFiles
    drives: tuple[Drive, ...]
    copies: int
    experiment: WearExperiment


def fill_step(parameters: dict[str, Any]) -> Step:
    return Step("fill", parameters["file_size"], 0, 0)


def mix_step(parameters: dict[str, Any], number: int) -> Step:
    """The pattern's step `number`, from 0: each goes on in the file where the one before it ended."""
    blocks = parameters["sequential_block_size"], parameters["random_block_size"]
    random = int(parameters["step_size"] * parameters["random_percent"] / 100) // blocks[1] * blocks[1]
    sequential = (parameters["step_size"] - random) // blocks[0] * blocks[0]
    regions = parameters["file_size"] // sequential if sequential else 0
    offset = number % regions * sequential if regions > 1 else 0
    return Step("mix", sequential, random, offset)


def fio_values(plan: Plan, step: Step, number: int) -> dict[str, dict[str, Value]]:
    """Returns the values of endurance.fio, by the section that wants them. A section that has nothing to write is left out."""
    parameters, found = plan.parameters, dict[str, dict[str, Value]]()
    if step.sequential_bytes:
        found["sequential"] = {
            "SEQUENTIAL_BLOCK_BYTES": parameters["sequential_block_size"],
            "OFFSET_BYTES": step.offset_bytes,
            "SEQUENTIAL_SIZE_BYTES": min(parameters["file_size"] - step.offset_bytes, step.sequential_bytes),
            "SEQUENTIAL_WRITTEN_BYTES": step.sequential_bytes,
        }
    if step.random_bytes:
        found["random"] = {
            "RANDOM_BLOCK_BYTES": parameters["random_block_size"],
            "RANDOM_SIZE_BYTES": parameters["file_size"],
            "RANDOM_WRITTEN_BYTES": step.random_bytes,
            "SEED": plan.seed + number,
        }
    return found


def write(plan: Plan, step: Step, number: int) -> dict[str, Any]:
    """Writes the step; its rate, bytes and duration. Raises BenchError for what went wrong with it."""
    found = fio_values(plan, step, number)
    values: dict[str, Value] = {"IO_DEPTH": plan.parameters["io_depth"]}
    for own in found.values():
        values |= own
    what, name = f"fio in step {number} of the endurance experiment", f"endurance-{number}"
    timeout_s = 300 + step.asked_bytes / SLOWEST_BYTES_PER_S
    completed = fio.ended_well(plan.jobs.run("endurance", name, plan.target, values, timeout_s, list(found)), what)
    (plan.jobs.raw / f"{name}.json").write_text(completed.stdout, encoding="utf-8")
    return parse_step(completed.stdout, what)


def parse_step(output: str, what: str) -> dict[str, Any]:
    """{written_bytes, duration_s, throughput_bytes_per_s, jobs} of one step. Raises BenchError for a failed or unreadable one."""
    asked = what.removeprefix("fio in ")
    with fio.readable(asked):
        jobs = fio.document_of(output, asked, ["bw_bytes"])["jobs"]
        failed = [str(job["jobname"]) for job in jobs if job["error"]]
        done = [
            {
                "name": job["jobname"],
                "written_bytes": fio.number(job["write"], "io_bytes"),
                "duration_s": fio.number(job["write"], "runtime") / 1000,
                "throughput_bytes_per_s": fio.number(job["write"], "bw_bytes"),
            }
            for job in jobs
        ]
    duration = max((job["duration_s"] for job in done), default=0.0)
    if failed or duration <= 0:
        raise BenchError(f"{what}: {', '.join(failed) or 'every job'} ended with an error or without writing")
    written = sum(job["written_bytes"] for job in done)
    return {
        "written_bytes": written,
        "duration_s": duration,
        "throughput_bytes_per_s": written / duration,
        "jobs": done,
    }
