"""What a reading can be at all, whichever tool or file states it.

Promise: one rule for each quantity. A value beyond it is what a device states for want of a reading (0 K, 127 and -128 of a signed byte,
0xFFFF), or is in another unit: no reading, and named; it never becomes a point.
"""

from __future__ import annotations

import math

# Silicon is specified from -55 to 125 degrees C (the military range, and that of LM75 and its like); junctions are shut down before 150.
DEGC_MIN, DEGC_MAX = -55.0, 150.0


def degrees_celsius(value: float, name: str) -> float:
    """The temperature. Raises ValueError where no part of a server that runs has it."""
    if not math.isfinite(value) or not DEGC_MIN <= value <= DEGC_MAX:
        raise ValueError(
            f"{name} is {value:g} degrees C, which no part of a server that runs has ({DEGC_MIN:g} to {DEGC_MAX:g})"
        )
    return value


def degrees_of_a_running_part(value: float, name: str) -> float:
    """The same of a part that is never at 0: BMCs, controllers and tools state 0 for a sensor that they have not read."""
    if value == 0:
        raise ValueError(f"{name} is 0 degrees C, which is no reading of what is in use")
    return degrees_celsius(value, name)
