"""Servers that answer slowly, in part, or with a request to wait: what is kept, when it is sent again, and what it costs."""

from __future__ import annotations

import email.utils
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_helpers import PATIENCE_S, load, scripted_http
from test_agent_delivery import Store, make, write_spool

from daq_bench.telemetry_agent.delivery.delivery import BATCH_BYTES_MAX
from daq_bench.telemetry_agent.delivery.influx import (
    RETRY_AFTER_S_MAX,
    SET_UP_RETRY_S,
    Destination,
    InfluxWriter,
    Rejected,
    Retryable,
    retry_after_s,
)

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
LINE = b"m x=1i 1\n"
Behaviour = Callable[[socket.socket, bytes, int], None]


@contextmanager
def raw_server(behave: Behaviour) -> Iterator[str]:
    """A loopback server below HTTP: after each whole request, `behave(connection, body, number of the request)`."""
    listener = socket.create_server(("127.0.0.1", 0))
    count = [0]

    def serve(connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        with connection, stream:
            while stream.readline():
                length = 0
                while (header := stream.readline().strip()) != b"":
                    if header.lower().startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                body = stream.read(length)
                count[0] += 1
                try:
                    behave(connection, body, count[0])
                except OSError:
                    return  # the agent has given up, as it should

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def reset(connection: socket.socket) -> None:
    """Close with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.shutdown(socket.SHUT_RD)
    connection.close()
    raise ConnectionResetError


def test_a_trickling_answer_is_given_up_in_time() -> None:
    """A byte every 50 ms beats any time limit on a single read; the limit is on the whole."""

    def trickle(connection: socket.socket, _body: bytes, _number: int) -> None:
        for byte in NO_CONTENT * 40:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    with raw_server(trickle) as url:
        started_s = time.monotonic()
        with pytest.raises(Retryable, match="timed out"):
            InfluxWriter(Destination(url, "bench")).write(LINE, 0.4)
        assert time.monotonic() - started_s < len(NO_CONTENT) * 40 * 0.05 / 2  # it had not come to its end


@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 2", b"HTTP/1.1 204 No Content\r\nX-Influx"])
def test_an_answer_cut_short_is_no_answer(part: bytes) -> None:
    """Also when what did come looked like success."""

    def cut(connection: socket.socket, _body: bytes, _number: int) -> None:
        connection.sendall(part)
        reset(connection)

    with raw_server(cut) as url, pytest.raises(Retryable):
        InfluxWriter(Destination(url, "bench")).write(LINE, 2.0)


def test_a_reset_after_the_answer_changes_nothing(tmp_path: Path) -> None:
    """204 and a reset: stored once and counted once; the next batch opens a new connection."""
    stored: list[bytes] = []

    def answer(connection: socket.socket, body: bytes, _number: int) -> None:
        stored.extend(body.splitlines(keepends=True))
        connection.sendall(NO_CONTENT)
        time.sleep(0.05)
        reset(connection)

    lines = [f"m x={n}i,pad={'7' * 90} {n}\n" for n in range(12_000)]
    write_spool(tmp_path, lines)
    with raw_server(answer) as url:
        delivery = make(tmp_path, url)
        delivery.drain(PATIENCE_S)
    assert (delivery.cursor.delivered_points, delivery.cursor.rejected_points) == (12_000, 0)
    assert list(dict.fromkeys(stored)) == [line.encode() for line in lines]


def test_a_kept_connection_that_the_server_closed_is_opened_anew() -> None:
    """Without an outage: servers close idle connections."""
    seen: list[int] = []

    def once(connection: socket.socket, _body: bytes, number: int) -> None:
        seen.append(number)
        connection.sendall(NO_CONTENT)
        connection.shutdown(socket.SHUT_RDWR)

    with raw_server(once) as url:
        writer = InfluxWriter(Destination(url, "bench"))
        for _ in range(3):
            writer.write(LINE, 2.0)
            time.sleep(0.02)
    assert seen == [1, 2, 3]


def test_one_connection_serves_many_batches() -> None:
    """A connection per second would cost more than the points."""
    peers: set[int] = set()

    def answer(connection: socket.socket, _body: bytes, _number: int) -> None:
        peers.add(connection.getpeername()[1])
        connection.sendall(NO_CONTENT)

    with raw_server(answer) as url:
        writer = InfluxWriter(Destination(url, "bench"))
        for _ in range(5):
            writer.write(LINE, 2.0)
    assert len(peers) == 1


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"503 Service Unavailable"])
def test_a_server_that_asks_to_wait_gets_its_pause(tmp_path: Path, status: bytes) -> None:
    """Retry-After is heeded, also while draining, and everything is stored afterwards."""
    times: list[float] = []
    stored: list[bytes] = []

    def answer(connection: socket.socket, body: bytes, number: int) -> None:
        times.append(time.monotonic())
        if number == 1:
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy")
        else:
            stored.append(body)
            connection.sendall(NO_CONTENT)

    write_spool(tmp_path, [LINE.decode()])
    with raw_server(answer) as url:
        delivery = make(tmp_path, url)
        delivery.start()
        time.sleep(0.3)
        delivery.stop(5.0)
    assert 0.95 <= times[1] - times[0] < 3.0
    assert stored == [LINE]
    assert delivery.outages.summary()["outage_count"] == 1


def test_how_retry_after_is_read() -> None:
    """Seconds or a date, bounded; nonsense is no request."""
    assert retry_after_s("7") == 7
    assert retry_after_s("86400") == RETRY_AFTER_S_MAX
    assert retry_after_s(email.utils.formatdate(time.time() + 20, usegmt=True)) == pytest.approx(20, abs=2)
    assert retry_after_s(email.utils.formatdate(time.time() - 20, usegmt=True)) == 0
    assert [retry_after_s(text) for text in (None, "", "soon", "-1", "1e9")] == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("status", "remedy"), [(401, "valid token"), (403, "may not write"), (404, "create the database")]
)
def test_a_wrong_set_up_is_retried_slowly_with_its_remedy(status: int, remedy: str) -> None:
    """Each attempt carries up to a megabyte, and nobody mends it within a second."""
    with (
        scripted_http(lambda _body, _path: (status, '{"error":"no"}')) as url,
        pytest.raises(Retryable, match=remedy) as caught,
    ):
        InfluxWriter(Destination(url, "bench")).write(LINE, 2.0)
    assert (caught.value.after_s, caught.value.asked) == (SET_UP_RETRY_S, False)


def test_a_batch_that_is_dropped_whole_is_rejected_at_once(tmp_path: Path) -> None:
    """ "points beyond retention policy dropped=N" with N all of them: one request, not two for each line."""
    requests = [0]

    def answer(body: bytes, _path: str) -> tuple[int, str]:
        requests[0] += 1
        return 400, f'{{"error":"partial write: points beyond retention policy dropped={body.count(b"{}")}"}}'.replace(
            "dropped=0", f"dropped={len(body.splitlines())}"
        )

    write_spool(tmp_path, [f"m x={n}i {n}\n" for n in range(1000)])
    with scripted_http(answer) as url:
        delivery = make(tmp_path, url)
        delivery.drain(PATIENCE_S)
    assert requests[0] == 1
    assert (delivery.cursor.delivered_points, delivery.cursor.rejected_points) == (0, 1000)
    kept = (tmp_path / "rejected.lp").read_text().splitlines()
    assert len(kept) == 1001
    assert "beyond retention policy" in kept[0]


def test_a_count_of_dropped_points_is_read_from_the_reason() -> None:
    """As InfluxDB 1.8 and 2.x word it."""
    text = 'partial write: field type conflict: input field "x" on measurement "m" is type float dropped=3'
    with (
        scripted_http(lambda _body, _path: (400, '{"error":"' + text.replace('"', "'") + '"}')) as url,
        pytest.raises(Rejected) as caught,
    ):
        InfluxWriter(Destination(url, "bench")).write(LINE, 2.0)
    assert caught.value.dropped == 3


def test_a_server_too_slow_for_a_whole_batch_gets_smaller_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time-out is for the whole exchange, so that a batch must fit into it; the size finds itself."""
    monkeypatch.setattr("daq_bench.telemetry_agent.delivery.delivery.WRITE_TIMEOUT_S", 0.3)
    monkeypatch.setattr("daq_bench.telemetry_agent.delivery.delivery.BACKOFF_S_MIN", 0.05)
    store = Store()

    def slow(body: bytes, path: str) -> tuple[int, str]:
        time.sleep(len(body) / 1_000_000)  # a megabyte a second
        return store.answer(body, path)

    lines = [f"m x={n}i,pad={'7' * 190} {n}\n" for n in range(3000)]
    write_spool(tmp_path, lines)
    with scripted_http(slow) as url:
        delivery = make(tmp_path, url)
        delivery.drain(PATIENCE_S)
    assert delivery.cursor.delivered_points == 3000
    assert list(dict.fromkeys(store.stored)) == lines


def test_comments_of_thinning_are_passed_over_also_beside_bad_lines(tmp_path: Path) -> None:
    """They are no points: neither sent nor counted, however the batch is split."""
    comment = (
        '# thinned {"points": 1, "from_ns": 1, "to_ns": 2, "reason": "r", "measurements": {"m": [1, 0]}} '
        + "\0" * 90_000
    )
    lines = ["good x=0i 0\n", comment + "\n", "bad x=1i 1\n", "good x=2i 2\n", comment + "\n", "bad x=3i 3\n"]
    write_spool(tmp_path, lines)
    store = Store()
    with scripted_http(store.answer) as url:
        delivery = make(tmp_path, url)
        delivery.drain(PATIENCE_S)
    assert list(dict.fromkeys(store.stored)) == [lines[0], lines[3]]
    assert (delivery.cursor.delivered_points, delivery.cursor.rejected_points) == (2, 2)
    assert load(tmp_path / "cursor.json")["delivered_bytes_offset"] == (tmp_path / "points.lp").stat().st_size
    kept = (tmp_path / "rejected.lp").read_text().splitlines(keepends=True)
    assert kept[1::2] == [lines[2], lines[5]]


def test_memory_stays_while_an_hour_of_backlog_is_replayed(tmp_path: Path) -> None:
    """A large server's hour at ten a second (here 170 MB) goes through one batch's memory."""
    line = "block_device,device=nvme0n1,host=h,run=r " + ",".join(f"field_{n}={n}234567i" for n in range(12)) + " {}\n"
    piece = "".join(line.format(n) for n in range(10_000)).encode()
    with (tmp_path / "points.lp").open("wb") as stream:
        for _ in range(70):
            stream.write(piece)
    count = [0]

    def answer(connection: socket.socket, body: bytes, _number: int) -> None:
        count[0] += body.count(b"\n")
        assert len(body) <= BATCH_BYTES_MAX
        connection.sendall(NO_CONTENT)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with raw_server(answer) as url:
        delivery = make(tmp_path, url)
        delivery.drain(PATIENCE_S)
    assert count[0] == delivery.cursor.delivered_points == 700_000
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 24 * BATCH_BYTES_MAX  # the server's side of this very process included
