"""Mean power during a record: a reading holds until the next."""

from __future__ import annotations

import pytest

from daq_bench.bench_model.behaviour.record_power import document, mean_power, readings_of
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.documents.struct import as_document


def test_the_mean_is_weighted_by_time() -> None:
    # 0 to 2 s: 400 W (read before the record), 2 to 8 s: 500 W, 8 to 10 s: 600 W -> (800 + 3000 + 1200) / 10
    assert mean_power([(-3.0, 400.0), (2.0, 500.0), (8.0, 600.0), (12.0, 900.0)], 0.0, 10.0) == pytest.approx(500.0)


def test_without_an_earlier_reading_the_first_one_stands_for_the_start() -> None:
    assert mean_power([(4.0, 300.0)], 0.0, 10.0) == pytest.approx(300.0)


def test_a_record_during_which_nothing_was_read_has_no_mean() -> None:
    assert mean_power([(-1.0, 300.0), (11.0, 300.0)], 0.0, 10.0) is None


UNREAD = (5.0, None)


@pytest.mark.parametrize(
    "readings",
    [
        [(2.0, 420.0), UNREAD],  # 0 W from the fifth second on: 420 W must not hold to the end
        [(2.0, 420.0), UNREAD, (6.0, 420.0)],  # what it was in between nobody knows
        [(-2.0, 420.0), (-1.0, None), (6.0, 420.0)],  # the state that holds at the start
        [UNREAD],
    ],
)
def test_a_record_during_which_the_power_could_not_be_read_has_no_mean_and_says_why(
    readings: list[tuple[float, float | None]],
) -> None:
    assert mean_power(readings, 0.0, 10.0) is None


def test_a_failed_reading_before_the_one_that_holds_or_behind_the_record_harms_nothing() -> None:
    assert mean_power([(-2.0, None), (-1.0, 300.0), (5.0, 500.0), (11.0, None)], 0.0, 10.0) == pytest.approx(400.0)


def test_the_bundle_s_points_say_where_the_power_could_not_be_read() -> None:
    """A BMC that answers 0 W in the burst: the reading before it once stood for the whole record, and a bound on power was met."""
    minidaq = {"started_utc": "1970-01-01T00:00:00Z", "time": {"record_s": 10.0}, "stored_bytes_per_s": 9e9}
    points = [
        Point("ipmi_power", {}, {"power_w": 420.0}, 2 * 10**9),
        Point("ipmi_power", {}, {"unread": "0 W while it measures"}, 5 * 10**9),
        Point("ipmi_sensor", {}, {"power_w": 0.0}, 5 * 10**9),
    ]
    readings = readings_of(points)
    assert readings == [(2.0, 420.0), (5.0, None)]
    found = as_document(document(readings, [{"condition": None, "minidaq": minidaq}]))
    assert (found["records"][0]["readings"], found["records"][0]["mean_w"]) == (1, None)
    assert found["reasons"]["snb_record.power_mean"].startswith(
        "Telemetry of ipmi: the server's power could not be read"
    )


def test_every_repetition_has_its_own_power_and_its_condition() -> None:
    minidaq = {"started_utc": "1970-01-01T00:00:00Z", "time": {"record_s": 10.0}, "stored_bytes_per_s": 9e9}
    found = as_document(document([(1.0, 450.0)], [{"condition": "fresh", "minidaq": minidaq}]))
    assert found["records"][0]["mean_w"] == pytest.approx(450.0)
    assert found["records"][0]["w_per_gb_per_s"] == pytest.approx(50.0)
    assert (found["records"][0]["condition"], found["reasons"]) == ("fresh", {})
    silent = as_document(document([], [{"condition": "fresh", "minidaq": minidaq}]))
    assert silent["records"][0]["mean_w"] is None
    assert silent["reasons"]["snb_record.power_mean"] == "the BMC gave no power reading (DCMI) during a record"
