"""Part `null-sink`: the copy bandwidth that it is held against, by the rows of `daqwriter checksum`."""

from __future__ import annotations

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.writer_bench.null_sink import copy_sample


def test_copy_bandwidth_of_one_core_and_of_all() -> None:
    rows = [
        {"operation": "memcpy", "threads": 1, "bytes_per_s": {"median": 9e9}},
        {"operation": "non-temporal-copy", "threads": 1, "bytes_per_s": {"median": 15e9}},
        {"operation": "non-temporal-copy", "threads": 2, "bytes_per_s": {"median": 22e9}},
        {"operation": "crc32", "threads": 2, "bytes_per_s": {"median": 40e9}},
    ]
    sample = copy_sample({"status": "complete", "memory": rows}, ())
    assert (sample.bytes_per_s, sample.more["non-temporal-copy_bytes_per_s"]) == (15e9, 22e9)
    of_all = copy_sample({"status": "complete", "memory": rows}, (), all_cores=True)
    assert (of_all.bytes_per_s, of_all.more["crc32_bytes_per_s"]) == (22e9, 40e9)
    with pytest.raises(BenchError, match="no row for all cores'"):
        copy_sample({"status": "complete", "memory": rows[:2] + rows[3:]}, (), all_cores=True)
    with pytest.raises(BenchError, match="no row"):
        copy_sample({"status": "complete", "memory": rows[:1]}, ())
