"""The common trigger, as one run sees it: before its burst it says that it is ready, and is told when to begin, and who begins with it.

The fleet that started the run holds the meeting (`rig.nightly.meeting`), a Unix socket that one variable of the environment names. A run
without that variable begins at once."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.rig.base.bundle import Bundle

VARIABLE = "DAQ_BENCH_MEETING"
FILE = "facts/together.json"
LOOK_S = 1.0  # between two looks whether somebody wants the run to end
LINE_BYTES_MAX = 1 << 16


def await_trigger(bundle: Bundle, candidate: str) -> None:
    """Returns when the burst shall begin. Writes into the bundle who takes part. Raises BenchError when the meeting is gone."""
    address = os.environ.get(VARIABLE)
    if not address:
        return
    asked_s = time.monotonic()
    said = _meet(address, candidate)
    waited_s = time.monotonic() - asked_s
    known = bundle.read(FILE) or {"schema_version": 1, "bursts": []}
    known["bursts"].append({**said, "waited_s": round(waited_s, 3)})
    bundle.write(FILE, known)
    bundle.event("trigger", "together", words(said), waited_s=round(waited_s, 3))
    time.sleep(max(0.0, said["begin_s"] - time.time()))


def words(said: dict[str, Any]) -> str:
    others = ", ".join(said["with"]) or "no other candidate"
    without = "".join(f"; without {name}: {reason}" for name, reason in said["without"].items())
    return f"the burst begins together with {others}{without}"


def _meet(address: str, candidate: str) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(address)
            link.sendall(json.dumps({"candidate": candidate}).encode() + b"\n")
            said: dict[str, Any] = json.loads(_line(link))
            return said
    except (OSError, ValueError) as error:
        raise BenchError(
            f"the fleet that was to give the trigger is gone ({in_words(error)}); the run cannot begin together"
        ) from None


def _line(link: socket.socket) -> bytes:
    """Returns what the meeting says, however long it takes: the meeting itself limits the waiting."""
    link.settimeout(LOOK_S)
    found = b""
    while not found.endswith(b"\n"):
        try:
            part = link.recv(4096)
        except TimeoutError:
            continue
        if not part or len(found) > LINE_BYTES_MAX:
            raise ValueError("it hung up")
        found += part
    return found
