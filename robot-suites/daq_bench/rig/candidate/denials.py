"""Denials of the bench by SELinux on a candidate, as one cause with its remedy; `on_candidate/denials.py` reads it there."""

from __future__ import annotations

import json
from collections.abc import Sequence

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.struct import Closed, read
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.machine import Machine, Places

# The processes by which the bench works there. The agent is Python, which the reader knows by its domain.
NAMES = ("daqwriter", "hotstore", "netprobe", "fio", "iperf3", "smartctl", "nvme", "ipmitool", "mdadm")


class Denials(Closed, frozen=True):
    """`denied` in words; `unread`: why no log could be read, empty where one was or where SELinux is off."""

    denied: list[str]
    unread: str


def denials(machine: Machine, places: Places, since_s: float) -> Denials:
    """The denials since `since_s` by the candidate's clock. Raises BenchError."""
    asked = {"since_s": since_s, "names": NAMES, "folders": [str(places.programs), str(places.state)]}
    return read(machine.call("denials", json.dumps(asked)), Denials, "the candidate's account of SELinux")


def remedy(places: Places) -> str:
    return (
        f"`restorecon -RFv {places.programs} {places.state}` there gives the bench's files the policy's labels; if it is denied again, "
        "`ausearch -m avc -ts recent | audit2why` says what allows it"
    )


def cause(machine: Machine, places: Places, since_s: float) -> str:
    """The denials since then in a sentence with the remedy; empty where there are none, or the candidate does not say."""
    try:
        found: Sequence[str] = denials(machine, places, since_s).denied
    except BenchError:
        return ""
    return f"SELinux denied the bench: {printable('; '.join(found))}. Remedy: {remedy(places)}" if found else ""
