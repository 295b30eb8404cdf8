"""Describes one network port and its settings: `network_port.py INTERFACE`. Prints {result}; a value that a port does not tell is null.

Reads /sys and ethtool; changes nothing."""

from __future__ import annotations

import json
import sys
from typing import Any

from daq_bench.candidate_kit.nic_statistics import pauses_of
from daq_bench.candidate_kit.sysfs import text_of
from daq_bench.candidate_kit.tools import ask
from daq_bench.rig.on_candidate.network.rdma import NET, devices_of

UNKNOWN = "Unknown!"  # ethtool's word for the speed of a link that is down
OFFLOADS = (
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
)


def ethtool(letter: str, interface: str) -> str:
    answer = ask("ethtool", *([letter] if letter else []), interface, timeout_s=120)
    return answer.text if answer and answer.status == 0 else ""


def pairs(text: str) -> dict[str, str]:
    """Returns `name: value` of each line; the first of a name, "n/a" left out."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.strip().partition(":")
        if colon and value.strip() and value.strip() != "n/a":
            found.setdefault(name.strip(), value.strip())
    return found


def rings(text: str) -> dict[str, Any]:
    most, _, now = text.partition("Current hardware settings:")
    return {"now": {key: value for key, value in pairs(now).items() if key in ("RX", "TX")},
            "most": {key: value for key, value in pairs(most).items() if key in ("RX", "TX")}}  # fmt: skip


def describe(interface: str) -> dict[str, Any]:
    folder = NET / interface
    driver, link, features = (
        pairs(ethtool("-i", interface)),
        pairs(ethtool("", interface)),
        pairs(ethtool("-k", interface)),
    )
    coalescing, counters = pairs(ethtool("-c", interface)), pairs(ethtool("-S", interface))
    device = folder / "device"
    return {
        "interface": interface,
        "operstate": text_of(folder / "operstate"),
        "speed": None if link.get("Speed") == UNKNOWN else link.get("Speed"),
        "mtu_bytes": int(text_of(folder / "mtu") or 0) or None,
        "txqueuelen": int(text_of(folder / "tx_queue_len") or 0) or None,
        "driver": driver.get("driver"),
        "firmware": driver.get("firmware-version"),
        "pcie": {"speed": text_of(device / "current_link_speed"), "width": text_of(device / "current_link_width")},
        "numa_node": text_of(device / "numa_node"),
        "pause": {key: value for key, value in pairs(ethtool("-a", interface)).items() if key in ("Autonegotiate", "RX", "TX")},
        "pause_frames": {key: int(counters[key]) for key in pauses_of(counters) if counters[key].isdigit()},
        "rings": rings(ethtool("-g", interface)),
        "coalescing": {key: coalescing[key] for key in ("Adaptive RX", "rx-usecs", "tx-usecs") if key in coalescing},
        "offloads": {key: features[key] for key in OFFLOADS if key in features},
        "rdma_devices": devices_of(interface),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps({"result": describe(sys.argv[1])}))
