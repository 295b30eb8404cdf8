"""A small client of QEMU's machine protocol (QMP), synchronous: one connection, one command after the other."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from daq_bench.bench_model.base.errors import BenchError

ANSWER_S_MAX = 20.0


class QmpError(BenchError):
    """QEMU refused a command, or is not there."""


class Qmp:
    """A connection to the socket `name` in `directory`. Raises QmpError when nobody answers there."""

    def __init__(self, directory: Path, name: str, timeout_s: float = ANSWER_S_MAX) -> None:
        self._events: list[dict[str, Any]] = []
        self._received = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        # Through a descriptor of the folder: the path of a Unix socket may not exceed 107 bytes.
        handle = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._socket.connect(f"/proc/self/fd/{handle}/{name}")
            self._read(time.monotonic() + timeout_s)  # the greeting
            self.execute("qmp_capabilities")
        except OSError as error:
            self._socket.close()
            raise QmpError(f"QEMU does not answer at {directory / name}: {error.strerror or error}") from None
        finally:
            os.close(handle)

    def execute(self, command: str, **arguments: Any) -> Any:
        """Executes a command and returns QEMU's answer. Raises QmpError with QEMU's reason."""
        text = {"execute": command, **({"arguments": arguments} if arguments else {})}
        self._socket.sendall(json.dumps(text).encode() + b"\n")
        while True:
            answer = self._read(time.monotonic() + ANSWER_S_MAX)
            if "event" in answer:
                self._events.append(answer)
            elif "error" in answer:
                raise QmpError(f"QEMU refused {command}: {answer['error']['desc']}")
            else:
                return answer["return"]

    def wait_event(self, name: str, timeout_s: float, **data: Any) -> bool:
        """True when an event of that name, carrying at least `data`, has come by `timeout_s` from now."""
        deadline = time.monotonic() + timeout_s
        while True:
            while self._events:
                event = self._events.pop(0)
                if event["event"] == name and data.items() <= event.get("data", {}).items():
                    return True
            if time.monotonic() >= deadline:
                return False
            with suppress(TimeoutError):
                self._events.append(self._read(deadline))

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Qmp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, deadline: float) -> dict[str, Any]:
        """The next line as a document. Raises TimeoutError at `deadline`; keeps the part of a line that has come by then."""
        while b"\n" not in self._received:
            self._socket.settimeout(max(0.01, deadline - time.monotonic()))
            part = self._socket.recv(65536)
            if not part:
                raise QmpError("QEMU closed the connection")
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        document: dict[str, Any] = json.loads(line)
        return document
