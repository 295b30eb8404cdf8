"""Delivery against a scripted HTTP server: what each answer means, and where the cursor ends."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from agent_helpers import PATIENCE_S, load, scripted_http
from hypothesis import given, settings
from hypothesis import strategies as st

from daq_bench.telemetry_agent.delivery.delivery import BATCH_BYTES_MAX, BATCH_BYTES_MIN, BATCH_LINES_MAX, Delivery
from daq_bench.telemetry_agent.delivery.influx import Destination, InfluxWriter, Rejected, Retryable, TooLarge
from daq_bench.telemetry_agent.spool.cursor import Cursor


def write_spool(directory: Path, lines: list[str]) -> Path:
    """A spool file of these lines."""
    path = directory / "points.lp"
    path.write_text("".join(lines))
    return path


def make(directory: Path, url: str) -> Delivery:
    """Delivery of the spool in `directory`."""
    path = directory / "points.lp"
    size = path.stat().st_size
    return Delivery(path, Cursor(directory, size), InfluxWriter(Destination(url, "bench")), lambda: size)


class Store:
    """A server that stores good lines and refuses batches with a bad one, as InfluxDB does."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.paths: list[str] = []
        self.sizes: list[int] = []

    def answer(self, body: bytes, path: str) -> tuple[int, str]:
        """204 or 400 with InfluxDB's JSON."""
        self.paths.append(path)
        lines = body.decode().splitlines(keepends=True)
        self.sizes.append(len(lines))
        bad = [line for line in lines if line.startswith("bad")]
        if bad:
            return 400, json.dumps({"error": f"partial write: field type conflict: {bad[0].strip()}"})
        self.stored += lines
        return 204, ""


def test_batches_are_bounded_and_the_cursor_reaches_the_end(tmp_path: Path) -> None:
    """12,000 lines in three batches with nanosecond precision."""
    lines = [f"m x={n}i {n}\n" for n in range(12_000)]
    write_spool(tmp_path, lines)
    store = Store()
    with scripted_http(store.answer) as url:
        make(tmp_path, url).drain(PATIENCE_S)
    assert store.stored == lines
    assert max(store.sizes) <= BATCH_LINES_MAX
    assert store.paths[0].strip() == "/write?db=bench&precision=ns"
    cursor = load(tmp_path / "cursor.json")
    assert cursor["delivered_points"] == 12_000
    assert cursor["delivered_bytes_offset"] == (tmp_path / "points.lp").stat().st_size


@settings(max_examples=15, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_exactly_the_bad_lines_are_put_aside(tmp_path_factory: pytest.TempPathFactory, good: list[bool]) -> None:
    """Wherever they are: stored and rejected together are the spool, in order, with the reason."""
    directory = tmp_path_factory.mktemp("spool")
    lines = [f"{'good' if ok else 'bad'} x={n}i {n}\n" for n, ok in enumerate(good)]
    write_spool(directory, lines)
    store = Store()
    with scripted_http(store.answer) as url:
        make(directory, url).drain(PATIENCE_S)
    assert list(dict.fromkeys(store.stored)) == [line for line in lines if line.startswith("good")]
    bad = [line for line in lines if line.startswith("bad")]
    rejected = directory / "rejected.lp"
    kept = rejected.read_text().splitlines(keepends=True) if bad else []
    assert kept[1::2] == bad
    assert all(c.startswith("# 2") and "HTTP 400: partial write: field type conflict" in c for c in kept[::2])
    cursor = load(directory / "cursor.json")
    assert (cursor["delivered_points"], cursor["rejected_points"]) == (len(lines) - len(bad), len(bad))


def test_a_body_too_large_is_split(tmp_path: Path) -> None:
    """413 for more than 7 lines: all are stored in the end."""
    lines = [f"m x={n}i {n}\n" for n in range(50)]
    write_spool(tmp_path, lines)
    store = Store()

    def answer(body: bytes, path: str) -> tuple[int, str]:
        return (413, "too large") if body.count(b"\n") > 7 else store.answer(body, path)

    with scripted_http(answer) as url:
        make(tmp_path, url).drain(PATIENCE_S)
    assert store.stored == lines
    assert not (tmp_path / "rejected.lp").exists()


TOO_LARGE_PAGE = "<html>\n<head><title>413 Request Entity Too Large</title></head>"  # of nginx


@pytest.mark.parametrize("limit_bytes", [3_000, 60_000])
def test_a_proxy_that_takes_small_bodies_alone_delays_nothing(tmp_path: Path, limit_bytes: int) -> None:
    """As nginx with a `client_max_body_size` of its own: no outage, no pause, and the size is learned once where batches fit."""
    lines = [f"m x={n}i {n}\n" for n in range(100_000)]
    write_spool(tmp_path, lines)
    store, refused = Store(), []

    def answer(body: bytes, path: str) -> tuple[int, str]:
        if len(body) > limit_bytes:
            refused.append(len(store.stored))
            return 413, TOO_LARGE_PAGE
        return store.answer(body, path)

    with scripted_http(answer) as url:
        delivery = make(tmp_path, url)
        delivery.drain(PATIENCE_S)
    assert store.stored == lines
    assert delivery.outages.count == 0 and not (tmp_path / "rejected.lp").exists()
    first = len("".join(lines)[:BATCH_BYTES_MAX].splitlines())
    assert limit_bytes < BATCH_BYTES_MIN or refused[-1] < first < len(lines)


def test_a_line_that_no_proxy_lets_pass_is_kept(tmp_path: Path) -> None:
    """A wrong address answers so, too: nothing is set aside."""
    write_spool(tmp_path, ["m x=1i 1\n", "m x=2i 2\n"])
    with scripted_http(lambda _body, _path: (413, TOO_LARGE_PAGE)) as url:
        delivery = make(tmp_path, url)
        with pytest.raises(Retryable, match="a proxy or web server"):
            delivery.deliver_batch()
    assert delivery.cursor.offset == 0 and not (tmp_path / "rejected.lp").exists()


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (400, Rejected, "HTTP 400: why"),
        (413, Rejected, "HTTP 413"),
        (422, Rejected, "HTTP 422"),
        (401, Retryable, "DAQ_BENCH_INFLUX_TOKEN"),
        (403, Retryable, "may not write"),
        (404, Retryable, "create the database"),
        (429, Retryable, "HTTP 429"),
        (500, Retryable, "HTTP 500: why"),
        (503, Retryable, "HTTP 503"),
        (200, Retryable, "is this an InfluxDB"),
        (302, Retryable, "HTTP 302"),
    ],
)
def test_what_each_status_means(status: int, kind: type[Exception], said: str) -> None:
    """Only faults of the lines themselves reject; a wrong set-up must never cost data."""
    with (
        scripted_http(lambda _body, _path: (status, '{"error":"why"}')) as url,
        pytest.raises(kind, match=said),
    ):
        InfluxWriter(Destination(url, "bench")).write(b"m x=1i 1\n", 2.0)


CONFLICT = 'unexpected error writing points to database: partial write: field type conflict: input field "x" dropped=1'


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        # InfluxDB 2.0 answers so: retried for ever, nothing behind the line would be delivered
        (500, CONFLICT, Rejected, "field type conflict"),
        (500, "engine: disk full", Retryable, "disk full"),
        # a set-up that blames the lines: no line is at fault
        (400, "Client sent an HTTP request to an HTTPS server.", Retryable, "https://"),
        (400, '{"code":"invalid","message":"organization name \\"x\\" not found"}', Retryable, "--org"),
        (400, "<html><body>Bad Request</body></html>", Retryable, "a proxy or web server"),
        (413, "<!DOCTYPE html><title>too large</title>", TooLarge, "a proxy or web server"),
        (400, '{"error":"unable to parse: organ,tag=1 x=1: bad timestamp"}', Rejected, "unable to parse"),
        # InfluxDB repeats the line, and the line has the words of a wrong set-up
        (400, """{"error":"unable to parse 'cpu,host=daq.lab.org busy=': missing field value"}""", Rejected, "unable"),
    ],
)
def test_what_the_words_of_an_answer_mean(status: int, body: str, kind: type[Exception], said: str) -> None:
    with scripted_http(lambda _body, _path: (status, body)) as url, pytest.raises(kind, match=said):
        InfluxWriter(Destination(url, "bench")).write(b"m x=1i 1\n", 2.0)


def test_a_line_that_a_500_blames_is_set_aside_and_the_others_are_delivered(tmp_path: Path) -> None:
    lines = [f"m x={n}i {n}\n" for n in range(20)]
    write_spool(tmp_path, lines)
    store = Store()

    def answer(body: bytes, path: str) -> tuple[int, str]:
        return (500, CONFLICT) if lines[7].encode() in body else store.answer(body, path)

    with scripted_http(answer) as url:
        make(tmp_path, url).drain(PATIENCE_S)
    assert store.stored == [line for line in lines if line != lines[7]]
    assert lines[7] in (tmp_path / "rejected.lp").read_text()


def test_a_refused_connection_and_a_silent_server_are_retryable() -> None:
    """Bounded by the timeout."""
    with pytest.raises(Retryable, match="refused"):
        InfluxWriter(Destination("http://127.0.0.1:9", "bench")).write(b"m x=1i 1\n", 2.0)

    def slow(_body: bytes, _path: str) -> tuple[int, str]:
        time.sleep(0.5)
        return 204, ""

    with scripted_http(slow) as url, pytest.raises(Retryable, match="timed out"):
        InfluxWriter(Destination(url, "bench")).write(b"m x=1i 1\n", 0.1)


def test_a_token_selects_the_v2_interface_and_is_never_shown() -> None:
    """Authorization header, org and bucket; repr hides the token."""
    seen: list[str] = []

    def answer(_body: bytes, path: str) -> tuple[int, str]:
        seen.append(path)
        return 204, ""

    with scripted_http(answer) as url:
        target = Destination(url, "bench", "my org", "s3cret")
        InfluxWriter(target).write(b"m x=1i 1\n", 2.0)
    assert seen == ["/api/v2/write?org=my+org&bucket=bench&precision=ns Token s3cret"]
    assert "s3cret" not in repr(target)


def test_an_outage_in_the_middle_of_a_split_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """The cursor follows the split from left to right; the rest comes later, rejected lines are kept once."""
    lines = ["good x=0i 0\n", "bad x=1i 1\n", "good x=2i 2\n", "good x=3i 3\n"]
    write_spool(tmp_path, lines)
    store = Store()
    calls = {"n": 0}

    def answer(body: bytes, path: str) -> tuple[int, str]:
        calls["n"] += 1
        return (503, "busy") if calls["n"] == 5 else store.answer(body, path)

    with scripted_http(answer) as url:
        delivery = make(tmp_path, url)
        with pytest.raises(Retryable):
            delivery.deliver_batch()
        assert (delivery.cursor.delivered_points, delivery.cursor.rejected_points) == (1, 1)
        assert delivery.deliver_batch() == 2
    assert store.stored == [lines[0], *lines[2:]]
    assert (tmp_path / "rejected.lp").read_text().count("bad") == 2  # the reason and the line


def test_outages_are_recorded_with_times_and_first_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One entry and one warning per outage, not per attempt."""
    write_spool(tmp_path, ["m x=1i 1\n"])
    store = Store()
    answers = [503, 503]

    def answer(body: bytes, path: str) -> tuple[int, str]:
        return (answers.pop(), "busy") if answers else store.answer(body, path)

    with scripted_http(answer) as url:
        delivery = make(tmp_path, url)
        delivery.drain(PATIENCE_S)
    summary = delivery.outages.summary()
    assert summary["reachable_at_end"] is True
    assert summary["outage_count"] == 1
    (outage,) = summary["outages"]
    assert outage["from_utc"] < outage["to_utc"]
    assert "503: busy" in outage["error"]
    warnings = capsys.readouterr().err.splitlines()
    assert ["does not take" in warnings[0], "again" in warnings[1], len(warnings)] == [True, True, 2]


def test_draining_gives_up_in_time_and_leaves_the_rest(tmp_path: Path) -> None:
    """An absent server costs the limit and no point."""
    write_spool(tmp_path, ["m x=1i 1\n"] * 3)
    delivery = make(tmp_path, "http://127.0.0.1:9")
    delivery.start()
    started_s = time.monotonic()
    delivery.stop(0.5)
    assert time.monotonic() - started_s < 60
    assert delivery.cursor.delivered_points == 0
    assert delivery.outages.summary()["reachable_at_end"] is False


def test_a_half_written_line_is_not_sent(tmp_path: Path) -> None:
    """Delivery sends whole lines only, even if it were told that half of one is committed."""
    write_spool(tmp_path, ["m x=1i 1\n", "m x=2"])
    store = Store()
    with scripted_http(store.answer) as url:
        make(tmp_path, url).drain(PATIENCE_S)
    assert store.stored == ["m x=1i 1\n"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"delivered_bytes_offset": -1}', '{"delivered_bytes_offset": 1}'])
def test_an_unreadable_cursor_means_from_the_start_and_is_said(tmp_path: Path, content: str) -> None:
    """Equal points overwrite each other, so delivering again is harmless; losing some is not."""
    (tmp_path / "cursor.json").write_text(content)
    cursor = Cursor(tmp_path, 100)
    assert cursor.offset == 0
    assert cursor.note is not None
    assert "cursor.json is unreadable" in cursor.note


def test_a_cursor_beyond_the_spool_means_from_the_start(tmp_path: Path) -> None:
    """The spool was replaced, or a power cut took its end."""
    write_spool(tmp_path, ["m x=1i 1\n"])
    Cursor(tmp_path, 0).deliver([b"m x=1i 1\n"] * 5)
    cursor = Cursor(tmp_path, 9)
    assert (cursor.offset, cursor.delivered_points) == (0, 0)
    assert cursor.note is not None
    assert "beyond" in cursor.note


def test_what_is_not_committed_is_not_sent(tmp_path: Path) -> None:
    """A write may still be taken back when the disk is full: the cursor must not have passed it."""
    path = write_spool(tmp_path, ["m x=1i 1\n", "m x=2i 2\n"])
    store, committed = Store(), [9]
    with scripted_http(store.answer) as url:
        writer = InfluxWriter(Destination(url, "bench"))
        delivery = Delivery(path, Cursor(tmp_path, 0), writer, lambda: committed[0])
        assert delivery.deliver_batch() == 1
        assert delivery.deliver_batch() == 0
        committed[0] = 18
        assert delivery.deliver_batch() == 1
    assert store.stored == ["m x=1i 1\n", "m x=2i 2\n"]


def test_a_closed_cursor_stands_still(tmp_path: Path) -> None:
    """A write answered after the summary was made must not change the accounts; replay sends it again."""
    cursor = Cursor(tmp_path, 100)
    cursor.deliver([b"m x=1i 1\n"])
    cursor.close()
    cursor.deliver([b"m x=2i 2\n"])
    cursor.reject([b"m x=3i 3\n"], "HTTP 400: no")
    assert (cursor.delivered_points, cursor.rejected_points) == (1, 0)
    assert load(tmp_path / "cursor.json")["delivered_points"] == 1
    assert not (tmp_path / "rejected.lp").exists()


def test_rejects_beyond_the_cursor_are_cut_after_a_crash(tmp_path: Path) -> None:
    """Killed between rejected.lp and cursor.json, the line comes again: it must not be kept twice."""
    cursor = Cursor(tmp_path, 100)
    cursor.reject([b"bad x=1i 1\n"], "HTTP 400: no")
    before = (tmp_path / "rejected.lp").read_text()
    saved = (tmp_path / "cursor.json").read_text()
    cursor.reject([b"bad x=2i 2\n"], "HTTP 400: no")
    (tmp_path / "cursor.json").write_text(saved)
    assert Cursor(tmp_path, 100).rejected_points == 1
    assert (tmp_path / "rejected.lp").read_text() == before
