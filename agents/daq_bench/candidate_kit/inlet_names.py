"""Which sensor of a BMC is of the air that a server takes in, by its name.

Promise: one rule for IPMI and Redfish. A part's inlet or ambient is air that the server has warmed, or a liquid, and never the server's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Intel's boards and NEC's servers have their intake's sensor on the front panel (NEC, Express5800/R120d-1E Maintenance Guide, 3.2.2),
# NVIDIA's GB200 on the front's board, whose limits are an intake's: 40 and 45 degrees C.
OF_THE_INLET = re.compile(
    r"inlet|ambient|intake|(?<![a-z])amb(?![a-z])|(?<![a-z])(?:front|fnt)[ _](?:panel|pnl|io)[ _]temp(?:[ _]\d+)?$",
    re.IGNORECASE,
)
OF_A_PART = re.compile(
    r"(?<![a-z])(?:"
    r"cpus?|p(?=\d)|dts|vrm?s?|mos|dimms?|ram|mem|memory|pch|processor|processormodule|"
    r"gpus?|gb(?=\d|_)|sxm|fpga|dpu|asic|hgx|retimer|"
    r"psus?|ps|p/s|pwr|power supply|pdb|battery|bbu|hsc|"
    r"pcie?|nic|lom|ocp|mezz|mezzanine|riser|raid|hba|qsfp|"
    r"nvmes?|ssds?|hdds?|hds?|disks?|drives?|u\.?2|m\.?2|bp|back ?plane|"
    r"bmc|(?:dc)?scm|fans?|exhaust|outlet|water|coolant|liquid|cdu|mb(?!\d*[\W_]*inlet)"
    r")\d*(?![a-z])",
    re.IGNORECASE,
)
# A mainboard's inlet is the only one of some OCP servers (MB_INLET_TEMP); NVIDIA's DGX and HPE's servers have it behind the front's.
OF_THE_MAINBOARD = re.compile(r"(?<![a-z])(?:mb\d*|(?<!system )board)[\W_]*inlet", re.IGNORECASE)
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # GPUInlet: GPU Inlet
# A distance to a limit in kelvin, which BMCs give in degrees C: Intel's Therm Margin, Therm Mgn and Thrm Mrgn.
MARGIN = re.compile(r"margin|(?<![a-z])mr?gn(?![a-z])", re.IGNORECASE)
PROCESSOR, UNREAD_DEGC = "3", -128  # IPMI 2.0, table 43-13; the least of a signed byte, which states no reading
COUNTS_DOWN = re.compile(r"(?<![a-z])dts\d*(?![a-z])", re.IGNORECASE)


def is_of_a_part(name: str) -> bool:
    """Is it named after a part with an inlet or ambient of its own?"""
    words = WORDS.sub(" ", name.replace("NVMe", "NVME").replace("PCIe", "PCIE"))
    return any(OF_A_PART.search(one) for one in (name, words))


def is_named_inlet(name: str) -> bool:
    """Says whether a sensor is named after the air that the server takes in, and after no part with an inlet of its own."""
    return bool(OF_THE_INLET.search(name)) and not is_of_a_part(name) and not MARGIN.search(name)


def without_mainboard(names: Iterable[str]) -> set[str]:
    """Those inlets, without a mainboard's where there is another: it is behind the front."""
    every = set(names)
    return {name for name in every if not OF_THE_MAINBOARD.search(name)} or every


def is_margin(name: str, value: float, entity: str) -> bool:
    """Is it no temperature, but how far a part is from its limit? `entity` as IPMI has it: 3.1 is a processor."""
    # PowerEdge's processors have sensors that are called "Temp" and no more.
    nameless = name.strip().lower() == "temp" and entity.partition(".")[0] == PROCESSOR
    counts_down = nameless or bool(COUNTS_DOWN.search(name))
    return bool(MARGIN.search(name)) or (UNREAD_DEGC < value < 0 and counts_down)
