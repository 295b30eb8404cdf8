"""Takes what a process prints, but no more than fits: whoever answers may be broken, and print for ever."""

from __future__ import annotations

import os
import select
import selectors
import subprocess
import time
from collections.abc import Iterator

from daq_bench.bench_model.base.errors import BenchError

OUTPUT_BYTES_MAX = 128 * 2**20  # fio's JSON of the largest plan has a few MB
PIPE_BYTES = 2**16


class EndlessOutputError(BenchError):
    """A process printed more than its caller takes. The caller ends it."""


def taken(
    process: subprocess.Popen[bytes], timeout_s: float, data: bytes = b"", bytes_max: int = OUTPUT_BYTES_MAX
) -> tuple[str, str]:
    """As `communicate`: returns standard output and error as text once the process has ended; `data` is its standard input.

    Raises EndlessOutputError after `bytes_max` bytes and TimeoutExpired after `timeout_s`; the process still runs then."""
    parts: dict[int, list[bytes]] = {stream.fileno(): [] for stream in (process.stdout, process.stderr) if stream}
    size = 0
    for handle, part in _parts(process, timeout_s, data):
        size += len(part)
        if size > bytes_max:
            raise EndlessOutputError(f"it printed more than {bytes_max // 2**20} MiB")
        parts[handle].append(part)
    out, error = (
        text_of(b"".join(parts[stream.fileno()])) if stream else "" for stream in (process.stdout, process.stderr)
    )
    _close(process)
    return out, error


def dropped(process: subprocess.Popen[bytes], timeout_s: float, data: bytes = b"") -> bool:
    """Lets the process end, without keeping what it prints. Returns whether it has ended within `timeout_s`."""
    try:
        for _ in _parts(process, timeout_s, data):
            continue
    except subprocess.TimeoutExpired:
        return False
    _close(process)
    return True


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _parts(process: subprocess.Popen[bytes], timeout_s: float, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Whatever the process prints, with the descriptor that it comes from, until it has ended."""
    deadline = time.monotonic() + timeout_s
    left = memoryview(data)
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream and not stream.closed:
                selector.register(stream.fileno(), selectors.EVENT_READ)
        if process.stdin and left:
            selector.register(process.stdin.fileno(), selectors.EVENT_WRITE)
        else:
            _close_input(process)
        while selector.get_map():
            if time.monotonic() > deadline:  # also of a process that always has something to say
                raise subprocess.TimeoutExpired(process.args, timeout_s)
            for key, events in selector.select(max(0.0, deadline - time.monotonic())):
                handle = key.fd
                if events & selectors.EVENT_WRITE:
                    left = _written(handle, left)
                    if not left:
                        selector.unregister(handle)
                        _close_input(process)
                elif part := os.read(handle, PIPE_BYTES):
                    yield handle, part
                else:
                    selector.unregister(handle)
    process.wait(max(0.0, deadline - time.monotonic()))


def _written(handle: int, data: memoryview) -> memoryview:
    """Returns what is left of the data; nothing where nobody reads any more."""
    try:
        return data[os.write(handle, data[: select.PIPE_BUF]) :]
    except BrokenPipeError:
        return data[:0]


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin and not process.stdin.closed:
        try:
            process.stdin.close()
        except BrokenPipeError:
            return


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
