"""Settings of a network port that are in force for one transfer: written, read back, and put back however it ends.

A name is an MTU or queue length of sysfs, or one of ethtool's offloads, rings, coalescing and pause parameters."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from daq_bench.rig.on_candidate.network.namespaces import NodesError, tool
from daq_bench.rig.on_candidate.network.places import Host, Namespaces

FEATURES = {"tso": "tcp-segmentation-offload", "gso": "generic-segmentation-offload", "gro": "generic-receive-offload"}
RINGS = {"rx-ring": ("rx", "RX"), "tx-ring": ("tx", "TX")}
SYSFS = {"mtu": "mtu", "txqueuelen": "tx_queue_len"}
COALESCING = {"rx-usecs": "rx-usecs", "adaptive-rx": "adaptive-rx"}
PAUSES = {"rx-pause": ("rx", "RX"), "tx-pause": ("tx", "TX")}


def field(text: str, name: str, section: str = "") -> str | None:
    """Returns the value of `name:` in ethtool's output, behind `section` if one is named; None where there is none."""
    part = text.partition(section)[2] if section else text
    match = re.search(rf"^{re.escape(name)}:\s*(\S+)", part, re.MULTILINE)
    return match[1] if match and match[1] != "n/a" else None


def read_setting(where: list[str], port: str, name: str) -> str | None:
    """Returns the value in force; None where the port has no such setting."""
    if name in SYSFS:
        return tool(*where, "cat", f"/sys/class/net/{port}/{SYSFS[name]}").strip()
    if name in FEATURES:
        return field(tool(*where, "ethtool", "-k", port, check=False), FEATURES[name])
    if name in RINGS:
        return field(tool(*where, "ethtool", "-g", port, check=False), RINGS[name][1], "Current hardware settings:")
    if name in COALESCING:
        said = tool(*where, "ethtool", "-c", port, check=False)
        if name == "adaptive-rx":
            match = re.search(r"^Adaptive RX: (on|off)\b", said, re.MULTILINE)
            return match[1] if match else None
        return field(said, COALESCING[name])
    if name in PAUSES:
        return field(tool(*where, "ethtool", "-a", port, check=False), PAUSES[name][1])
    raise NodesError(f"there is no setting {name}: correct it in the scenario")


def write_setting(where: list[str], port: str, name: str, value: str) -> None:
    if name in SYSFS:
        tool(*where, "ip", "link", "set", "dev", port, name, value)
    elif name in FEATURES:
        tool(*where, "ethtool", "-K", port, name, value)
    else:
        letter = "-G" if name in RINGS else "-C" if name in COALESCING else "-A"
        word = COALESCING[name] if name in COALESCING else (RINGS.get(name) or PAUSES[name])[0]
        tool(*where, "ethtool", letter, port, word, value)


def resolved(where: list[str], port: str, name: str, value: str) -> str:
    """Returns the asked value, with `max` of a ring replaced by the card's largest."""
    if value != "max" or name not in RINGS:
        return value
    return field(tool(*where, "ethtool", "-g", port, check=False), RINGS[name][1], "Pre-set maximums:") or value


class Settings:
    """The settings for this transfer, with a record for each: {id, at, asked, before, read_back, held, restored, status, detail}."""

    def __init__(self, network: Host | Namespaces, asked: list[dict[str, Any]], journal: Path | None) -> None:
        self.network, self.asked, self.journal = network, asked, journal
        self.records: list[dict[str, Any]] = []
        self.undo: list[tuple[dict[str, Any], list[Any]]] = []  # record, and the words for `_put`
        if journal is not None and journal.exists():
            try:
                kept = [
                    (str(place), str(name), str(value)) for place, name, value in json.loads(journal.read_text("utf-8"))
                ]
            except (ValueError, RecursionError, TypeError):
                raise NodesError(
                    f"{journal} does not name the settings to put back: set them by hand, then remove it"
                ) from None
            for words in kept:
                self._put(*words)
            journal.unlink()

    def _put(self, place: str, name: str, value: str) -> None:
        if place.startswith("/"):
            Path(place).write_text(value, encoding="utf-8")
        else:
            write_setting([], place, name, value)

    def apply(self) -> None:
        for one in self.asked:
            for path, value in one.get("files", {}).items():
                self._one(
                    one["id"],
                    "host",
                    [],
                    path,
                    str(value),
                    lambda path=path: Path(path).read_text(encoding="utf-8").strip(),
                )
            if "value" in one:
                for node, port in self.network.ports:
                    where = self.network.inside(node)
                    read = lambda where=where, port=port, name=one["id"]: read_setting(where, port, name)  # noqa: E731
                    self._one(one["id"], node, where, port, resolved(where, port, one["id"], str(one["value"])), read)
                if one["id"] == "mtu" and isinstance(self.network, Namespaces):
                    for port in self.network.switch_ports():
                        write_setting([], port, "mtu", str(one["value"]))
        for record in self.records:
            if record["status"] in ("applied", "unchanged"):
                record["read_back"] = record["read"]()
                if record["read_back"] != record["asked"]:
                    record.update(status="mismatch", detail=f"asked {record['asked']}, reads {record['read_back']}")

    def _one(self, name: str, at: str, where: list[str], place: str, value: str, read: Any) -> None:
        record: dict[str, Any] = {
            "id": name, "at": at, "place": place, "asked": value, "before": None, "read_back": None, "held": None, "restored": None,
            "status": "unsupported", "detail": f"{place} has no such setting", "read": read,
        }  # fmt: skip
        self.records.append(record)
        try:
            record["before"] = read()
        except OSError as error:
            record["detail"] = f"{place}: {error.strerror}"
        if record["before"] is None:
            return
        record.update(status="unchanged", detail="")
        if record["before"] == value:
            return
        self.undo.append((record, [place, name, record["before"]]))
        if self.journal is not None and isinstance(self.network, Host):
            self.journal.write_text(json.dumps([words for _, words in reversed(self.undo)]), encoding="utf-8")
        try:
            if place.startswith("/"):
                self._put(place, name, value)
            else:
                write_setting(where, place, name, value)
            record["status"] = "applied"
        except (NodesError, OSError) as error:
            record.update(status="refused", detail=str(error), read_back=record["before"])

    def look_again(self) -> None:
        """Reads the settings again and notes whether they held until the transfer's end."""
        for record in self.records:
            if record["before"] is not None:
                record["held"] = record["read"]() == record["read_back"]

    def put_back(self) -> None:
        for record, (place, name, value) in reversed(self.undo):
            if isinstance(self.network, Host):
                with contextlib.suppress(NodesError, OSError):
                    self._put(place, name, value)
                record["restored"] = record["read"]() == value
            else:
                record["restored"] = True  # the port goes with its namespace
        if self.journal is not None and all(record["restored"] for record, _ in self.undo):
            self.journal.unlink(missing_ok=True)
