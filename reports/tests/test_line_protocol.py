"""The spool of a bundle: torn ends, and errors that name the line. The line itself is bench_model's."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.reading.line_protocol import read_spool


def test_only_wanted_measurements_are_decoded_and_a_torn_end_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text("cpu v=1 1\ncpu_frequency v=2 2\ncpu,core=0 v=3 3\ncpu v=4", encoding="utf-8")
    spool = read_spool(tmp_path, "p.lp", ["cpu"])
    assert spool is not None
    assert [point.fields["v"] for point in spool.points] == [1.0, 3.0]
    assert (spool.lines, spool.torn) == (3, True)


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text("cpu v=1 1\ncpu v=oops 2\n", encoding="utf-8")
    with pytest.raises(BundleError, match=r"p\.lp: line 2: .*oops"):
        read_spool(tmp_path, "p.lp", ["cpu"])
