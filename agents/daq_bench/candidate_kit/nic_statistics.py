"""The table of a network card's own counters (`ethtool -S`), which each driver names differently, and what they mean.

Promise: one table for the agent and the survey of ports. Several names mean the same: the first that a card has counts, since some say
it twice (mlx5: tx_pause_ctrl_phy and tx_global_pause) and have durations beside it (tx_global_pause_duration).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Field -> the drivers' names for it: mlx5, bnxt and bnx2x, ixgbe and igb, i40e and ice, sfc, be2net, hns3, others.
KNOWN = {
    "pause_received_frames": (
        "rx_pause_ctrl_phy", "rx_pause_frames", "rx_flow_control_xoff", "rx_flow_control_xoff.nic", "port.link_xoff_rx",
        "link_xoff_rx.nic", "port_rx_pause", "mac_rx_mac_pause_num", "rx_pause", "rx_global_pause",
    ),
    "pause_transmitted_frames": (
        "tx_pause_ctrl_phy", "tx_pause_frames", "tx_flow_control_xoff", "tx_flow_control_xoff.nic", "port.link_xoff_tx",
        "link_xoff_tx.nic", "port_tx_pause", "tx_pauseframes", "mac_tx_mac_pause_num", "tx_pause", "tx_global_pause",
    ),
    "missed_frames": ("rx_missed_errors", "rx_missed", "port_rx_overflow"),
    "no_buffer_frames": (
        "rx_out_of_buffer", "out_of_buffer", "rx_no_buffer_count", "rx_no_buffer", "rx_no_dma_resources", "port_rx_nodesc_drops",
        "rx_drops_no_pbuf",
    ),
    "discarded_frames": (
        "rx_discards_phy", "rx_total_discard_pkts", "rx_discard_pkts", "rx_discards", "port.rx_dropped", "rx_dropped.nic",
    ),
}  # fmt: skip
PRIORITY_PAUSES = {
    "priority_pause_received_frames": re.compile(
        r"rx_prio[0-7]_pause|port\.rx_priority_[0-7]_xoff|rx_priority_[0-7]_xoff\.nic|mac_rx_pfc_pri[0-7]_pkt_num"
    ),
    "priority_pause_transmitted_frames": re.compile(
        r"tx_prio[0-7]_pause|port\.tx_priority_[0-7]_xoff|tx_priority_[0-7]_xoff\.nic|mac_tx_pfc_pri[0-7]_pkt_num"
    ),
}  # fmt: skip


def names_of(counters: Mapping[str, object]) -> dict[str, list[str]]:
    """The counters that each field is the sum of; a field that the card does not count is left out."""
    found = {field: [name for name in names if name in counters][:1] for field, names in KNOWN.items()}
    found.update({field: [one for one in counters if form.fullmatch(one)] for field, form in PRIORITY_PAUSES.items()})
    return {field: names for field, names in found.items() if names}


def pauses_of(counters: Mapping[str, object]) -> list[str]:
    """The counters of pause frames, each frame in one of them."""
    return [name for field, names in names_of(counters).items() if "pause" in field for name in names]
