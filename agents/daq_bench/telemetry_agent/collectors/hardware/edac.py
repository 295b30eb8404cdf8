"""Errors of the memory that ECC corrected, and those that it could not correct, by controller and by module, every few seconds.

Promise: the counters of the kernel's EDAC drivers since they were loaded. A count that is not a number costs itself and is named. Without a
driver for the memory controller (no ECC, or firmware that keeps the errors to itself) there is no count, which is not a count of zero.
"""

from __future__ import annotations

from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.devices.kernel_text import visible
from daq_bench.telemetry_agent.reading.attributes import read_present, readable_name, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import OfRoot, Reading

CONTROLLERS = "sys/devices/system/edac/mc"
WHOLE = "total"
LABEL = "label"
# field -> (file of the controller, file of a module). Errors that no module can be blamed for stand in the controller's only.
COUNTS = {"corrected": ("ce_count", "dimm_ce_count"), "uncorrected": ("ue_count", "dimm_ue_count")}


class Edac(OfRoot):
    """Collector of the measurement `memory_errors`."""

    name = "edac"
    period_s_min = 5.0

    def read(self) -> Reading:
        """Texts hold one attribute each, by "controller|module|field"."""
        files: dict[str, Path] = {}
        for controller in sorted((self._root / CONTROLLERS).glob("mc[0-9]*")):
            modules = [*controller.glob("dimm[0-9]*"), *controller.glob("rank[0-9]*")]
            for place, module in ((controller, WHOLE), *((one, readable_name(one.name)) for one in sorted(modules))):
                for field, names in COUNTS.items():
                    files[f"{controller.name}|{module}|{field}"] = place / names[module != WHOLE]
                if module != WHOLE:
                    files[f"{controller.name}|{module}|{LABEL}"] = place / "dimm_label"
        texts, faults = read_present(files)
        for key in [key for key in texts if not key.endswith(f"|{LABEL}")]:
            try:
                whole_number(texts[key], str(files[key]))
            except ValueError as error:
                faults.append(str(error))
                del texts[key]
        if all(key.endswith(f"|{LABEL}") for key in texts):
            texts = {}
        nothing = f"no memory controller in {self._root / CONTROLLERS}: no ECC, no EDAC driver for it, or the firmware keeps its errors"
        return reading_of(texts, faults, nothing)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per controller (module `total`) and per module."""
        found: dict[tuple[str, str], dict[str, FieldValue]] = {}
        for key, text in reading.texts.items():
            controller, module, field = key.split("|")
            value: FieldValue = visible(text.strip()) if field == LABEL else whole_number(text, key)
            if value != "":
                found.setdefault((controller, module), {})[field] = value
        return [
            Point("memory_errors", (("controller", controller), ("module", module)), fields, reading.time_ns)
            for (controller, module), fields in found.items()
            if any(name in fields for name in COUNTS)
        ]
