"""Documents of the storage application as `streams_checksum` writes them, on a server with as many cores as a test wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ORIGINAL_BYTES_PER_S = 2e9
THREADS = (1, 2, 4)
SHARES = [0.67, 0.13, 0.1, 0.06, 0.04]
SHARE_NS = 280e3  # time for a whole event by zlib in one thread


def run(bytes_per_s: float, reason: str | None = None) -> dict[str, Any]:
    return {
        "bytes_per_s": bytes_per_s, "written_bytes": int(bytes_per_s), "emission_s": 1.0, "held_share": 0.9, "busiest_share": 0.67,
        "fallback_share": 0.0, "cpu_seconds_per_gb": 0.6, "failed": False, "reason": reason,
    }  # fmt: skip


def setup(variant: str, threads: int, placement: str = "all", event_bytes: int = 1_000_000) -> dict[str, Any]:
    return {"variant": variant, "threads": threads, "placement": placement, "event_bytes": event_bytes}


def compared(
    kind: str, label: str, of: dict[str, Any], ratio: Callable[[int], float], rounds: int, reason: str | None = None
) -> dict[str, Any]:
    pairs = [
        {
            "round": number,
            "reference_first": number % 2 == 1,
            "reference": run(ORIGINAL_BYTES_PER_S),
            "measured": run(ORIGINAL_BYTES_PER_S * ratio(number), reason),
        }
        for number in range(1, rounds + 1)
    ]
    return {"kind": kind, "label": label, "setup": of, "reference": setup("zlib", 1), "pairs": pairs}


def verification(name: str, variant: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "variant": variant, "threads": 2, "files": 5, "bytes": 64_000_000, "by_definition": 1, "wrong_files": 0,
        "wrong": [], "closed": True, "status": "intact", "faults": 0, "events": {"expected": 64, "present": 64}, "failed": False,
        "error": None, **changes,
    }  # fmt: skip


def paced(name: str, rate: float, **changes: Any) -> dict[str, Any]:
    streams = [
        {
            "share": share, "achieved_share": share + 0.002, "written_bytes": int(rate * share), "files": 2, "cpu_s": 0.5,
            "checksum_and_copy_s": 0.1, "queue_high_water": 0.2, "held_s": 0.0,
        }
        for share in SHARES
    ]  # fmt: skip
    return {
        "name": name, "variant": "fused", "threads": 1, "full_bytes_per_s": rate, "asked_bytes_per_s": rate, "seconds": 10.0,
        "due_bytes": int(10 * rate), "offered_bytes": int(10 * rate), "written_bytes": int(10 * rate), "achieved_fraction": 1.0,
        "kept": 1.0, "held_s": 0.0, "backlog_high_bytes": 5_000_000, "abandoned_events": 0, "latency_us_p99": 9000.0,
        "cpu_seconds_per_gb": 0.4, "streams": streams, "elapsed_s": 10.0, "failed": False, "error": None, "reason": None, **changes,
    }  # fmt: skip


def overhead(variant: str, threads: int, us: float, turns: int = 8) -> dict[str, Any]:
    share = [SHARE_NS / threads + turn for turn in range(turns)]
    return {
        "variant": variant,
        "threads": threads,
        "ns": [one + 1000 * us + 100 * (turn % 3) for turn, one in enumerate(share)],
        "share_ns": share,
        "reason": None,
    }


def found(ratios: dict[str, float] | None = None, siblings: bool = False, rounds: int = 6) -> dict[str, Any]:
    """`ratios`: of the comparisons named by their labels; the rest gain a little per thread. Each scatters by 1 %."""
    given = ratios or {}

    def of(label: str, usual: float) -> Callable[[int], float]:
        return lambda number: given.get(label, usual) * (1 + 0.01 * (number % 3 - 1))

    cores = 4
    comparisons = [
        compared("switched-off", "pool-busy, 1 thread", setup("pool-busy", 1), of("pool-busy, 1 thread", 1.0), rounds)
    ]
    for place in ("cores", "all") if siblings else ("all",):
        for threads in (*THREADS, 8) if place == "all" and siblings else THREADS:
            if threads > 1 or place == "cores":
                label = f"pool-busy, {threads} thread{'s' if threads > 1 else ''}"
                usual = 1 + 0.1 * min(threads, cores)
                comparisons.append(
                    compared("threads", label, setup("pool-busy", threads, place), of(label, usual), rounds)
                )
    small = setup("pool-busy", cores, "all", 4096)
    for kind, label, one, usual in (
        ("small-events", "small", small, 1.005),
        ("application", "fused", setup("fused", 1), 3.0),
        ("ceiling", "no checksum at all", setup("off", 1), 3.4),
    ):
        comparisons.append(compared(kind, label, one, of(label, usual), rounds))
    if siblings:
        comparisons.append(
            compared("smt", "siblings added", setup("pool-busy", 2 * cores), of("siblings added", 1.0), rounds)
        )
    order = list(range(2 * cores if siblings else cores))
    return {
        "schema_version": 1,
        "cpus": {
            "cores": order[:cores], "order": order, "packages": 1, "smt": "on" if siblings else "notsupported",
            "has_siblings": siblings,
        },
        "application": {"variant": "fused", "threads": 1},
        "shares": SHARES,
        "event_bytes": 1_000_000,
        "small_event_bytes": 4096,
        "throughput": {"variants": ["pool-busy"], "threads": [*THREADS, 24], "sink": "null", "seconds": 0.6},
        "rounds": rounds,
        "identity": {
            "splits": {"bytes": 1024, "comparisons": 8200},
            "wrong": 0,
            "mismatch": None,
            "combine_ns": {"median": 16.8, "min": 16.0, "max": 20.0},
        },
        "overhead": {
            "event_bytes": 1 << 20,
            "points": [
                overhead(variant, threads, us * (threads - 1))
                for variant, us in (("thread-per-chunk", 30.0), ("pool-cv", 12.0), ("pool-busy", 4.0))
                for threads in THREADS
            ],
        },
        "comparisons": comparisons,
        "not_measured": [{"threads": 24, "reason": "the candidate has 4 physical cores"}],
        "demand": [paced("sustained", 0.05e9), paced("peak", 0.125e9)],
        "verification": [verification("identity-pool-busy", "pool-busy"), verification("sustained", "fused")],
        "limits": [],
    }  # fmt: skip
