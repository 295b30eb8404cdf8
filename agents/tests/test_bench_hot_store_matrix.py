"""The hot store's matrix measures every way in for real with a held backlog, and names the cells that it leaves out."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import GIB
from daq_bench.bench_rounds import cli, tables
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Settings
from daq_bench.bench_rounds.parts import known_parts
from daq_bench.hot_store_bench import hot_store_matrix, trial
from daq_bench.rig.base.shell import LocalShell

QUICK, FULL = Settings(quick=True), Settings()


@pytest.fixture
def tools(daqwriter: Path, tmp_path: Path) -> Tools:
    return Tools(LocalShell(), daqwriter, tmp_path)


def test_asking_for_the_hot_store_gets_its_tables_too() -> None:
    assert [part.name for part in cli.chosen_parts("hot_store")] == [
        "hot_store",
        "hot_store_embedded",
        "hot_store_served",
    ]
    assert [part.name for part in cli.chosen_parts("hot_store_served")] == ["hot_store_served"]
    with pytest.raises(argparse.ArgumentTypeError, match="hot_store_embeded"):
        cli.chosen_parts("hot_store_embeded")


@pytest.mark.parametrize("engine", ["lmdb", "raw-lmdb", "rocksdb"])
def test_each_engine_in_process_holds_the_backlog(tools: Tools, engine: str) -> None:
    if engine == "rocksdb" and hot_store_matrix.rocksdb() is None:
        pytest.skip("RocksDB is not installed")
    sample = hot_store_matrix.in_process(tools, engine, 10_000, 32 << 20, 1.5)
    assert sample.more["put_ops_per_s"] > 0 and sample.more["consume_ops_per_s"] > 0
    assert 29 << 20 < sample.more["backlog_bytes"] < 34 << 20
    assert list(tools.scratch.iterdir()) == [] and list(trial.MEMORY.glob("bench-hot-store-*")) == []


@pytest.mark.parametrize("number", [0, 5, 7, 8])
def test_each_way_to_redis_is_measured(tools: Tools, number: int) -> None:
    way = hot_store_matrix.WAYS[number]
    sample = hot_store_matrix.served(tools, way, 1000, hot_store_matrix.SMALL, 1.5)
    assert sample.more["put_ops_per_s"] > 0 and sample.more["consume_ops_per_s"] > 0
    assert f"--pipeline={way.pipeline}" in sample.argv


def test_an_engine_that_fails_is_a_failure_of_its_own(tools: Tools) -> None:
    with pytest.raises(BenchError, match="memcached"):
        hot_store_matrix.in_process(tools, "memcached", 1000, hot_store_matrix.SMALL, 1.5)
    assert list(tools.scratch.iterdir()) == []


def test_a_backlog_without_room_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch, tools: Tools) -> None:
    monkeypatch.setattr(hot_store_matrix, "room_bytes", lambda: 64 * GIB)
    assert hot_store_matrix.cells(FULL) == hot_store_matrix.CELLS and hot_store_matrix.left_out(FULL) == []
    largest = hot_store_matrix.served_points(FULL, tools)[-1]
    assert largest.key["backlog_bytes"] == 4 * GIB and not any("append" in one.name for one in largest.contenders)
    monkeypatch.setattr(hot_store_matrix, "room_bytes", lambda: 8 * GIB)
    assert (10_000, hot_store_matrix.LARGE) not in hot_store_matrix.cells(FULL)
    assert "12.0 GiB" in hot_store_matrix.left_out(FULL)[0] and "8.0 GiB are free" in hot_store_matrix.left_out(FULL)[0]
    assert "no backlog of 4 GiB" in hot_store_matrix.left_out(QUICK)[0]


def test_without_rocksdb_the_table_has_none_and_says_so(monkeypatch: pytest.MonkeyPatch, tools: Tools) -> None:
    monkeypatch.setattr(hot_store_matrix, "rocksdb", lambda: None)
    names = {one.name for point in hot_store_matrix.embedded_points(QUICK, tools) for one in point.contenders}
    assert names == {hot_store_matrix.RAW, hot_store_matrix.OWN}
    with hot_store_matrix.EMBEDDED.hold(QUICK, tools) as notes:
        assert any("RocksDB was not measured" in note for note in notes)


def test_tables_name_the_backlog_in_bytes_and_do_not_mix_the_sides(tools: Tools) -> None:
    for part in (hot_store_matrix.EMBEDDED, hot_store_matrix.SERVED):
        labels = [point.label for point in part.points(QUICK, tools)]
        assert labels[1] == "values of 10000 B, backlog 256 MiB (268435456 B)" and part is known_parts()[part.name]
    embedded = {one.name for point in hot_store_matrix.embedded_points(QUICK, tools) for one in point.contenders}
    served = {one.name for point in hot_store_matrix.served_points(QUICK, tools) for one in point.contenders}
    assert not any("Redis" in name for name in embedded) and all("Redis" in name for name in served)


def test_a_table_without_criteria_claims_none() -> None:
    document = {"part": "hot_store_served", "title": "", "points": [], "notes": [], "criteria": []}
    assert "Shown, not judged." in tables.section(document, hot_store_matrix.SERVED)
    assert tables.verdict([document]) == "Result: shown, not judged."
