"""The output of iperf3 and perftest, whole, cut off and hostile. iperf3's is a recording of 3.12, perftest's has the form of 4.5."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daq_bench.workloads.lan.model import iperf3, perftest, transfers

RECORDED = Path(__file__).parent / "recorded"


def text(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def changed(**parts: Any) -> str:
    document = json.loads(text("iperf3.json"))
    for place, value in parts.items():
        outer, _, inner = place.partition("__")
        if inner:
            document["end"][outer][inner] = value
        else:
            document[outer] = value
    return json.dumps(document)


def test_a_recorded_transfer_of_iperf3_is_read_as_it_stands_there() -> None:
    flow, end = iperf3.parse(text("iperf3.json")), json.loads(text("iperf3.json"))["end"]
    assert flow.bytes_per_s == end["sum_received"]["bits_per_second"] / 8
    assert (flow.sent_bytes, flow.sent_again, flow.congestion) == (40_632_320, 1, "bbr")
    assert flow.version == "iperf 3.12" and flow.reverse_bytes_per_s is None
    assert flow.sent_again_share == pytest.approx((flow.mss_bytes or 0) / 40_632_320)
    omitted = [one["sum"]["omitted"] for one in json.loads(text("iperf3.json"))["intervals"]]
    assert True in omitted and len(flow.samples_bytes_per_s) == omitted.count(False)


def test_both_directions_are_kept_apart() -> None:
    document = json.loads(text("iperf3.json"))
    document["end"]["sum_received_bidir_reverse"] = {"bits_per_second": 8e8}
    assert iperf3.parse(json.dumps(document)).reverse_bytes_per_s == 1e8


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (text("iperf3.json")[:400], "no whole JSON document"),
        ("", "no whole JSON document"),
        ("[]", "no JSON object"),
        (changed(error="unable to connect to server: Connection refused"), "Connection refused"),
        (changed(end={}), "has no sum_sent"),
        (changed(sum_sent__seconds=0), "measured no time"),
        (
            changed(start={"test_start": {"duration": 10}}),
            "ended after 0.9 s of the 10 s",
        ),  # before 3.12 without an error beside it
        (changed(sum_received__bits_per_second=0), "told of none that arrived"),
        (changed(sum_received__bits_per_second=-1), "bits_per_second is -1"),
        (changed(sum_received__bits_per_second="9" * 30), "a number that is not negative"),
        (changed(sum_sent__retransmits=True), "retransmits is True"),
        (changed(sum_sent__bytes=1e300), "bytes is 1e+300"),
        (changed(intervals=["late"]), "iperf 3.12: iperf3's intervals are"),
        (changed(intervals=None), "iperf 3.12: iperf3's intervals are"),
        (changed(intervals=[None]), "a list of objects"),
    ],
)
def test_what_iperf3_did_not_finish_or_could_not_have_measured_is_refused(output: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("+", r"\+")):
        iperf3.parse(output)


def test_perftests_bandwidth_is_in_bytes_per_second() -> None:
    """0.20 Gb/sec and 0.000382 million messages per second: the second has more digits. For 64 B it prints six of both."""
    found = perftest.parse_bandwidth(text("ib_write_bw.txt"), 65536)
    assert (found.messages, found.bytes_per_s) == (768, pytest.approx(382 * 65536))
    small = perftest.parse_bandwidth(text("ib_write_bw_small.txt"), 64)
    assert (small.messages, small.bytes_per_s) == (26900, pytest.approx(13435 * 64))


def test_of_a_fast_card_the_bandwidth_has_the_more_digits() -> None:
    fast = GOOD.replace(ROW, " 8388608    71525              0.00               96.00              0.001431")
    assert perftest.parse_bandwidth(fast, 8 << 20).bytes_per_s == pytest.approx(96 * 1.25e8)


def test_with_a_duration_perftest_knows_the_mean_alone_and_with_iterations_the_percentiles() -> None:
    assert perftest.parse_latency(text("ib_read_lat.txt"), 64) == perftest.Latency(64, 16_893, 118.53)
    rule = "-" * 87
    full = (
        f"{rule}\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]"
        f"   99.9% percentile[usec] \n 64      1000          2.11           9.80         2.28 \t       2.30        "
        f"\t0.05\t\t2.60    \t\t9.80   \n{rule}\n"
    )
    assert perftest.parse_latency(full, 64) == perftest.Latency(64, 1000, 2.3, 2.28, 2.6, 9.8)


GOOD = text("ib_write_bw.txt")
ROW = next(line for line in GOOD.splitlines() if line.startswith(" 65536"))


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (GOOD.rstrip("-\n") + "\n", "cut off"),
        (GOOD[: GOOD.index("#bytes")], "no tables"),
        ("", "it printed nothing"),
        (GOOD + GOOD, "2 tables"),
        (GOOD.replace(ROW + "\n", ""), "0 rows"),
        (GOOD.replace(ROW, ROW + "\n" + ROW), "2 rows"),
        (GOOD.replace("Gb/sec", "MB/sec"), "Gb/sec was asked for"),
        (GOOD.replace("0.20", "nan"), "does not fit"),
        (GOOD.replace("0.20", "-0.20"), "does not fit"),
        (GOOD.replace("0.20", "0.2O"), "something else than numbers"),
        (GOOD.replace("0.000382", ""), "does not fit its 5 columns"),
        (GOOD.replace("0.20", "0.00").replace("0.000382", "0.000000"), "moved nothing"),
        (GOOD.replace("0.20", "0.30"), "0.30 Gb/sec and 0.000382 Mpps of 65536 B do not agree"),
        (GOOD.replace("65536  ", "32768  "), "messages of 32768 B; 65536 B were asked for"),
        (
            "Couldn't connect to 10.0.0.2:18515\nUnable to open file descriptor for socket connection",
            "no tables: Unable to open",
        ),
    ],
)
def test_perftests_tables_that_are_not_what_was_asked_for_are_refused(output: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        perftest.parse_bandwidth(output, 65536)


def test_numbers_of_perftest_that_run_together_are_one_error_that_names_the_tool() -> None:
    """Its columns have a width that a fast card exceeds."""
    row = next(line for line in GOOD.splitlines() if line.strip()[:1].isdigit())
    words = row.split()
    glued = GOOD.replace(row, " ".join([*words[:2], words[2], words[3] + words[4].replace(".", "", 1)]))
    flow = {"tool": "ib_write_bw"}
    with pytest.raises(ValueError, match=r"^ib_write_bw \(version: `ib_write_bw --version`.*run together"):
        transfers._measured("write", flow, glued, int(words[0]))


def test_a_bandwidth_is_no_latency() -> None:
    with pytest.raises(ValueError, match="a latency was asked for"):
        perftest.parse_latency(GOOD, 65536)


def with_intervals(*intervals: tuple[float, float]) -> str:
    """iperf3's document with intervals of (bits/s, seconds)."""
    document = json.loads(text("iperf3.json"))
    document["intervals"] = [
        {"sum": {"bits_per_second": rate, "seconds": seconds, "omitted": False}} for rate, seconds in intervals
    ]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("fragment", "samples"),
    [
        ((0.0, 0.0001), (1e9 / 8, 1e9 / 8 * 1.0 / 1.0001)),  # iperf 3.7: 0.1 ms in which nothing was sent
        ((18e9, 0.035), (1e9 / 8, (1e9 + 18e9 * 0.035) / 1.035 / 8)),  # 35 ms at 1.8 times the line
        ((5e8, 0.6), (1e9 / 8, 1e9 / 8, 5e8 / 8)),  # most of an interval is one
    ],
)
def test_what_is_left_at_the_end_belongs_to_the_interval_before(
    fragment: tuple[float, float], samples: tuple[float, ...]
) -> None:
    flow = iperf3.parse(with_intervals((1e9, 1.0), (1e9, 1.0), fragment))
    assert flow.samples_bytes_per_s == pytest.approx(samples)


def test_a_fragment_at_the_begin_belongs_to_the_interval_behind_it() -> None:
    flow = iperf3.parse(with_intervals((9e12, 0.0001), (1e9, 1.0), (1e9, 1.0)))
    assert flow.samples_bytes_per_s == pytest.approx(((9e12 * 0.0001 + 1e9) / 1.0001 / 8, 1e9 / 8))


@pytest.mark.parametrize(
    ("before", "behind"), [("warning: no route to host\n", ""), ("", "\niperf Done.\n"), ("\n", "\n")]
)
def test_lines_around_the_document_do_not_lose_it(before: str, behind: str) -> None:
    one = text("iperf3.json")
    assert iperf3.parse(before + one + behind) == iperf3.parse(one)


def test_two_documents_one_behind_the_other_are_named() -> None:
    one = text("iperf3.json")
    with pytest.raises(ValueError, match="printed 2 JSON documents"):
        iperf3.parse(one + "\n" + one)
    with pytest.raises(ValueError, match="no whole JSON document"):
        iperf3.parse(one + "\n" + one[:-40])
