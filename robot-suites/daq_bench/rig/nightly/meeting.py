"""The common trigger of several runs: each says when it is ready for its burst; when all are, all are told one moment to begin.

Nobody waits for ever. A run that ends, or is not ready when the waiting has lasted too long, is left out, and the others are told so and
begin. One that comes too late begins alone, and is told that."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LEAD_S = 1.0  # from the word to the moment: every run has heard it by then
HELLO_S_MAX = 10.0
LINE_BYTES_MAX = 1 << 12
ENDED = "its run ended before this burst"


@dataclass
class Meeting:
    """Lets runs meet, by their candidates' names. `wait_s_max`: from the first that is ready to the release without the others."""

    members: Sequence[str]
    wait_s_max: float
    clock: Callable[[], float] = time.monotonic
    _ready: dict[str, socket.socket] = field(default_factory=dict)
    _left: dict[str, str] = field(default_factory=dict)
    _burst: dict[str, int] = field(default_factory=dict)  # how many each has begun
    _released: int = 0
    _since: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ready(self, member: str, link: socket.socket) -> None:
        """The run of `member` stands before its next burst."""
        with self._lock:
            if member not in self.members or member in self._ready:
                link.close()  # a stranger, or one that is counted already
                return
            if member in self._left or self._burst.get(member, 0) < self._released:
                self._burst[member] = self._burst.get(member, 0) + 1
                late = self._left.get(member, "the others had begun")
                _tell(link, [], {name: f"begins alone: {late}" for name in self.members if name != member})
                return
            self._since = self._since if self._ready else self.clock()
            self._ready[member] = link
            self._look()

    def left(self, member: str, reason: str = ENDED) -> None:
        """The run of `member` will not come any more."""
        with self._lock:
            self._left.setdefault(member, reason)
            link = self._ready.pop(member, None)
            if link is not None:
                link.close()
            self._look()

    def look(self) -> None:
        """Releases those who are ready once the waiting has lasted too long."""
        with self._lock:
            if self._ready and self.clock() - self._since >= self.wait_s_max:
                for member in self.members:
                    if member not in self._ready:
                        self._left.setdefault(member, f"it was not ready within {self.wait_s_max:g} s")
                self._look()

    def _look(self) -> None:
        if not self._ready or any(one not in self._ready and one not in self._left for one in self.members):
            return
        begin_s = time.time() + LEAD_S
        for member, link in self._ready.items():
            others = [one for one in self._ready if one != member]
            _tell(link, others, {one: self._left[one] for one in self.members if one not in self._ready}, begin_s)
        self._released += 1
        self._burst |= dict.fromkeys(self._ready, self._released)
        self._ready.clear()


def _tell(link: socket.socket, others: Sequence[str], without: dict[str, str], begin_s: float | None = None) -> None:
    said = {"begin_s": time.time() if begin_s is None else begin_s, "with": list(others), "without": without}
    with contextlib.suppress(OSError):  # it has just ended, which the fleet sees
        link.sendall(json.dumps(said).encode() + b"\n")
    link.close()


@contextmanager
def held(meeting: Meeting) -> Iterator[str]:
    """Holds the meeting on a socket that only this user can reach, whose path is yielded."""
    folder = Path(tempfile.mkdtemp(prefix="daq-bench-meeting-"))
    over = threading.Event()
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / "socket"))
            server.listen(len(meeting.members) + 8)
            server.settimeout(0.2)
            thread = threading.Thread(target=_serve, args=(server, meeting, over), daemon=True)
            thread.start()
            try:
                yield str(folder / "socket")
            finally:
                over.set()
                thread.join()
    finally:
        shutil.rmtree(folder)


def _serve(server: socket.socket, meeting: Meeting, over: threading.Event) -> None:
    while not over.is_set():
        meeting.look()
        try:
            link, _ = server.accept()
        except TimeoutError:
            continue
        threading.Thread(target=_hello, args=(link, meeting), daemon=True).start()


def _hello(link: socket.socket, meeting: Meeting) -> None:
    """A caller who says nothing, or no name, is hung up on."""
    link.settimeout(HELLO_S_MAX)
    try:
        said = link.makefile("rb").readline(LINE_BYTES_MAX)
        meeting.ready(str(json.loads(said)["candidate"]), link)
    except (OSError, ValueError, KeyError, TypeError):
        link.close()
