"""results/hot_store.json from results/hot_store_runs.json, which names the raw documents of what was measured, and from those."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.files import find_document, read_json
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.hot_store import figures as model

RUNS = "results/hot_store_runs.json"
NAME = "results/hot_store.json"
EMBEDDED = "lmdb"
Raw = Callable[[str], Any]  # the content of results/raw/<name>.json


def of_bundle(bundle: Path, run: Run) -> Document | None:
    """None for a run without the hot store. Raises OSError and ValueError where a raw document is gone or damaged."""
    found = find_document(bundle, RUNS)
    return document(found, raw_of(bundle / "results" / "raw")) if found is not None else None


def raw_of(folder: Path) -> Raw:
    return lambda name: read_json(folder, f"{name}.json")


def document(runs: Document, raw: Raw) -> Document:
    """Points against value size, N clients, matrix of the semantics, what the kills lost, scale out, and the summary of all."""
    seconds = runs["seconds_per_point"]
    points = [point_of(one, raw, seconds, runs["seed"]) for one in runs["points"]]
    clients = [model.clients_point(one["clients"], raw(one["document"]), seconds) for one in runs["clients"]]
    losses = [loss_of(one, raw) for one in runs["losses"]]
    matrix = model.matrix({engine: raw(name)["rows"] for engine, name in runs["semantics"].items()}, losses)
    scale = [scale_point_of(one, raw) for one in runs["scale_out"]["points"]]
    same = ("seconds_per_point", "capacity_bytes", "redis_clients", "client_value_bytes", "memory_folder")
    return {
        "schema_version": 1,
        **{key: runs[key] for key in same},
        "sample_s": model.SAMPLE_S,
        "promises": promises_of(runs, raw),
        "published": model.PUBLISHED,
        "points": points,
        "clients": clients,
        "semantics": matrix,
        "losses": losses,
        "scale_out": {**runs["scale_out"], "points": scale},
        "summary": model.summary(points, matrix, losses, scale),
    }


def point_of(one: Document, raw: Raw, seconds: float, seed: int) -> Document:
    drive = raw(one["drive"]) if one["drive"] else None
    redis = raw(one["redis"])["samples_ops_per_s"]
    made = model.point(one["value_bytes"], raw(one["embedded"]), redis, drive, seconds, seed)
    return {"repetition": one["repetition"], **made}


def loss_of(one: Document, raw: Raw) -> Document:
    row = model.loss_row(one["id"], one["text"], one["engine"], raw(one["verify"]), one["acknowledged_min"])
    if not one["heirs"]:
        return row
    return model.with_returned(row, sum(raw(heir)["returned_events"] for heir in one["heirs"]))


def scale_point_of(one: Document, raw: Raw) -> Document:
    producers, consumers = ([raw(name) for name in one[kind]] for kind in ("producers", "consumers"))
    return model.scale_point(
        one["deployment"], one["nodes"], producers, consumers, one["network_bytes"], one["drained_s"]
    )


def promises_of(runs: Document, raw: Raw) -> dict[str, str]:
    """Returns each engine's promise for acknowledged operations, as configured for the measurements with it."""
    promises = {EMBEDDED: raw(runs["points"][0]["embedded"])["promise"]}
    for one in runs["losses"]:
        promises.setdefault(one["engine"], raw(one["verify"])["promise"])
    return promises
