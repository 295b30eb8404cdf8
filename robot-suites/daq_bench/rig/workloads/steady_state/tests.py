"""The tests of the steady-state workload as data: each round's measurements, and the one watched for steadiness. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.units import binary_label
from daq_bench.rig.workloads.shared.fio_job import JobFile, Value

KIB = 2**10
TRACKED_BYTES = 4 * KIB
SEQUENTIAL_BYTES = 128 * KIB  # [P] random transfers of this size are as fast as sequential ones
STANDARD: dict[str, dict[str, tuple[int, ...]]] = {  # SNIA SSS PTS 2.0.2
    "throughput": {"transfer_sizes": (128 * KIB, 1024 * KIB)},
    "iops": {
        "transfer_sizes": tuple(int(size * KIB) for size in (0.5, 4, 8, 16, 32, 64, 128, 1024)),
        "read_percents": (100, 95, 65, 50, 35, 5, 0),
    },
    "latency": {"transfer_sizes": (512, 4 * KIB, 8 * KIB), "read_percents": (100, 65, 0)},
}
SECONDS_PER_POINT = 60.0
# JEDEC JESD219, enterprise: bytes of a transfer and its share in percent.
JESD219_SIZES = {
    512: 4, 1024: 1, 1536: 1, 2048: 1, 2560: 1, 3072: 1, 3584: 1,
    4 * KIB: 67, 8 * KIB: 10, 16 * KIB: 7, 32 * KIB: 3, 64 * KIB: 3,
}  # fmt: skip
JESD219_READ_PERCENT = 40
JESD219_NOTES = (
    "fio draws reads and writes from one split of sizes, and transfers begin at 4 KiB boundaries, those of less than 4 KiB too",
    "the busy 5 % of the addresses are the first 5 % of the span, the next 15 % follow them: fio does not scatter its zones",
    "JESD219 does not name a tracking variable; steadiness is judged by the operations per second of the whole mix [P]",
)


@dataclass(frozen=True)
class Point:
    """One fio job of a round. `block_bytes` is None for a mix of sizes, which `split` then gives in fio's words."""

    name: str
    sequential: bool
    read_percent: int
    block_bytes: int | None
    split: str = ""

    @property
    def written_share(self) -> float:
        """[P] of the rate of sequential writes: small transfers at random places take longer, and reads write nothing."""
        size = self.block_bytes or TRACKED_BYTES
        return (1 - self.read_percent / 100) * (1.0 if self.sequential else min(1.0, size / SEQUENTIAL_BYTES))


@dataclass(frozen=True)
class Test:
    """`tracked` is the name of the point whose `quantity` (bytes_per_s, iops or latency_us) must be steady."""

    name: str
    kind: str
    title: str
    tracking: str
    unit: str
    quantity: str
    tracked: str
    points: tuple[Point, ...]
    io_depth: int
    threads: int
    notes: tuple[str, ...] = ()


def tests_of(parameters: dict[str, Any], logical_bytes: int) -> list[Test]:
    """The tests that the scenario asks for, on a drive whose logical blocks have `logical_bytes`."""
    tests = []
    throughput = parameters.get("throughput")
    if throughput:
        tests += [_throughput(size, throughput["io_depth"]) for size in throughput["transfer_sizes"]]
    iops = parameters.get("iops")
    if iops:
        title = "Random operations per second"
        tests.append(_matrix("iops", title, iops, logical_bytes, "IOPS", iops["io_depth"], iops["threads"]))
    latency = parameters.get("latency")
    if latency:
        tests.append(_matrix("latency", "Latency of one operation at a time", latency, logical_bytes, "us", 1, 1))
    jesd219 = parameters.get("jesd219")
    if jesd219:
        tests.append(_jesd219(jesd219, logical_bytes))
    return tests


def shortcomings(parameters: dict[str, Any]) -> list[str]:
    """Returns the respects in which the parameters ask for less than the standard does."""
    found = []
    if "span_size" in parameters:
        found.append(
            f"Steady state is sought on {binary_label(parameters['span_size'])} of the target, not on the whole drive"
        )
    if parameters["seconds_per_point"] < SECONDS_PER_POINT and set(parameters) & set(STANDARD):
        found.append(
            f"A point of a round lasts {parameters['seconds_per_point']:g} s instead of the standard's {SECONDS_PER_POINT:g} s"
        )
    if parameters["rounds_max"] < 25:
        found.append(f"Steady state is sought in {parameters['rounds_max']} rounds at most instead of 25")
    for test, wanted in STANDARD.items():
        for key, values in wanted.items():
            asked = parameters.get(test, {}).get(key, values)
            missing = [value for value in values if value not in asked]
            if missing:
                shown = ", ".join(
                    binary_label(value) if key == "transfer_sizes" else f"{value} % reads" for value in missing
                )
                found.append(f"The {test} test leaves out {shown} of the standard's")
    return found


def untracked(parameters: dict[str, Any]) -> list[str]:
    """Returns the missing parts of a test's tracking variable, as `field: problem`."""
    found = []
    for test in ("iops", "latency"):
        asked = parameters.get(test)
        if asked and TRACKED_BYTES not in asked["transfer_sizes"]:
            found.append(f"{test}.transfer_sizes: lacks 4KiB")
        if asked and 0 not in asked["read_percents"]:
            found.append(f"{test}.read_percents: lacks 0")
    return found


def _throughput(size: int, io_depth: int) -> Test:
    label = binary_label(size)
    points = tuple(Point(f"{word}-{size}", True, share, size) for word, share in (("read", 100), ("write", 0)))
    return Test(
        name=f"throughput-{size // KIB}kib",
        kind="throughput",
        title=f"Sequential throughput in {label} transfers",
        tracking=f"sequential write throughput, {label}",
        unit="B/s",
        quantity="bytes_per_s",
        tracked=f"write-{size}",
        points=points,
        io_depth=io_depth,
        threads=1,
    )


def _matrix(
    kind: str, title: str, asked: dict[str, Any], logical_bytes: int, unit: str, io_depth: int, threads: int
) -> Test:
    sizes = [size for size in asked["transfer_sizes"] if size >= logical_bytes]
    left_out = [binary_label(size) for size in asked["transfer_sizes"] if size < logical_bytes]
    # The standard's order: read shares from reads to writes, and in each the sizes from large to small.
    points = tuple(
        Point(f"r{share}-{size}", False, share, size)
        for share in sorted(asked["read_percents"], reverse=True)
        for size in sorted(sizes, reverse=True)
    )
    what = "operations per second" if kind == "iops" else "mean latency"
    notes = (
        [f"not measured: {', '.join(left_out)}, smaller than the drive's logical block of {logical_bytes} B"]
        if left_out
        else []
    )
    return Test(
        name=kind,
        kind=kind,
        title=title,
        tracking=f"{what} of random writes, 4 KiB",
        unit=unit,
        quantity="iops" if kind == "iops" else "latency_us",
        tracked=f"r0-{TRACKED_BYTES}",
        points=points,
        io_depth=io_depth,
        threads=threads,
        notes=tuple(notes),
    )


def _jesd219(asked: dict[str, Any], logical_bytes: int) -> Test:
    shares: dict[int, int] = {}
    for size, share in JESD219_SIZES.items():
        fitting = -(-size // logical_bytes) * logical_bytes
        shares[fitting] = shares.get(fitting, 0) + share
    raised = sum(share for size, share in JESD219_SIZES.items() if size % logical_bytes)
    notes = list(JESD219_NOTES)
    if raised:
        notes.append(
            f"{raised} % of the transfers are raised to the drive's logical block of {logical_bytes} B: it takes no smaller ones"
        )
    split = ":".join(f"{size}/{share}" for size, share in sorted(shares.items()))
    return Test(
        name="jesd219",
        kind="jesd219",
        title="JESD219 enterprise mix",
        tracking="operations per second of the whole mix",
        unit="IOPS",
        quantity="iops",
        tracked="mix",
        points=(Point("mix", False, JESD219_READ_PERCENT, None, split),),
        io_depth=asked["io_depth"],
        threads=asked["threads"],
        notes=tuple(notes),
    )


def round_file(test: Test, span_bytes: int) -> JobFile:
    """fio's job file for the rounds of a test: its points one after another, each in a section of its own."""
    parts = [(point.name, *_access(point, span_bytes)) for point in test.points]
    return JobFile.named("steady-state").repeated(f"steady-{test.name}", parts)


def round_values(test: Test, seconds: float, seed: int) -> dict[str, Value]:
    """The values that it leaves open. `seed` must be the round's own, or every round would visit the same addresses in the same order."""
    return {"IO_DEPTH": test.io_depth, "THREADS": test.threads, "RUNTIME": f"{seconds}s", "SEED": seed}


def _access(point: Point, span_bytes: int) -> tuple[str, dict[str, Value]]:
    """The section of steady-state.fio for a point, and its values."""
    block = point.block_bytes or TRACKED_BYTES
    own: dict[str, Value] = {"NAME": point.name, "SIZE_BYTES": span_bytes // block * block}
    if point.block_bytes is None:
        return "split", {**own, "READ_PERCENT": point.read_percent, "SPLIT": point.split}
    own["BLOCK_BYTES"] = block
    if point.sequential or point.read_percent in (0, 100):
        direction = "read" if point.read_percent else "write"
        return (
            ("sequential", {**own, "PATTERN": direction})
            if point.sequential
            else ("random", {**own, "PATTERN": f"rand{direction}"})
        )
    return "mixed", {**own, "READ_PERCENT": point.read_percent}
