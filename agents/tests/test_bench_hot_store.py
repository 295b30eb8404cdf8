"""The hot store's part: both contenders for real, and the runs that count for the scatter."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.hot_store_bench import hot_store, trial
from daq_bench.rig.base.shell import LocalShell


def test_both_sides_are_measured_for_real(daqwriter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_store, "WARM_UP_S", 0.2)
    tools = Tools(LocalShell(), daqwriter, tmp_path)
    own, redis = hot_store.embedded(tools, 1000, 1.5), hot_store.redis(tools, 1000, 1.5)
    for sample in (own, redis):
        assert sample.more["put_ops_per_s"] > 0 and sample.more["consume_ops_per_s"] > 0
    # A machine whose CPUs are all taken hands nothing over in that short time, and the figure is left out.
    assert own.more.get("handover_before_ns", 1) > 0 and own.more["cpus_moved"] in (0.0, 1.0)
    assert list(tmp_path.iterdir()) == []
    assert list(trial.MEMORY.glob("bench-hot-store-*")) == []


def test_all_runs_are_judged_and_those_whose_cpus_stayed_stand_beside() -> None:
    sample = Sample(1.0, more={"put_ops_per_s": 5.0, "put_relative_stdev": 0.3, "consume_relative_stdev": 0.2})
    stayed = hot_store.with_distance(sample, {"handover_ns": {"before": 37.0, "after": 38.0}}).more
    assert (stayed["put_relative_stdev_while_cpus_stayed"], stayed["cpus_moved"]) == (0.3, 0.0)
    moved = hot_store.with_distance(sample, {"handover_ns": {"before": 37.0, "after": 205.0}}).more
    assert "put_relative_stdev_while_cpus_stayed" not in moved
    for more in (stayed, moved):
        assert (more["put_relative_stdev"], more["consume_relative_stdev"], more["put_ops_per_s"]) == (0.3, 0.2, 5.0)
    assert (moved["cpus_moved"], moved["handover_before_ns"], moved["handover_after_ns"]) == (1.0, 37.0, 205.0)
    one_cpu = hot_store.with_distance(sample, {"handover_ns": {"before": None, "after": None}}).more
    assert one_cpu["cpus_moved"] == 0.0 and "handover_before_ns" not in one_cpu
