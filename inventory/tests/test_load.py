"""The arithmetic of the DUNE readout unit (seed facts 1 to 3 of the paper)."""

import pytest

from daq_bench.bench_model.base.load import NOMINAL_BYTES_PER_S, Demand

UNIT = Demand(links=10, superchunk_bytes=5568, superchunk_rate_hz=166_000, scale=1.0, duration_s=100.0)


def test_the_real_demand_is_less_than_the_nominal_one() -> None:
    assert UNIT.real_bytes_per_s == 9.24288e9
    assert pytest.approx(8.608, abs=5e-4) == UNIT.real_bytes_per_s / 2**30
    assert UNIT.real_bytes_per_s < NOMINAL_BYTES_PER_S


def test_a_record_of_a_hundred_seconds_holds_924_gb() -> None:
    assert UNIT.record_bytes == 924_288_000_000


def test_scale_and_duration_multiply_the_record() -> None:
    rehearsal = Demand(10, 5568, 166_000, scale=0.1, duration_s=20)
    assert rehearsal.record_bytes == 18_485_760_000
    assert rehearsal.as_document()["offered_bytes_per_s"] == pytest.approx(0.924288e9)
    assert rehearsal.as_document()["real_bytes_per_s"] == UNIT.real_bytes_per_s
