"""The kernel's small texts: read whole and bounded, understood exactly or refused with what they held.

Promise: a text that is empty, cut off or not of its format raises ValueError with its first characters; it never
becomes a zero or a shorter reading. A file that is not there is nothing wrong: kernels and devices differ.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from daq_bench.telemetry_agent.base.point import INT64_MAX
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, reading_now

EXCERPT_CHARACTERS = 200
ATTRIBUTE_BYTES_MAX = 65536  # sysfs gives at most a page


def excerpt(text: str) -> str:
    """The begin of a text, for an error."""
    rest = len(text) - EXCERPT_CHARACTERS
    return repr(text[:EXCERPT_CHARACTERS]) + (f" and {rest} more characters" if rest > 0 else "")


def whole_number(text: str, where: str) -> int:
    """A count from 0 to what a point can hold (2^63 - 1), or ValueError."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{where}: a whole number is expected, not {excerpt(digits)}")
    number = int(digits) if len(digits) < 40 else INT64_MAX + 1
    if number > INT64_MAX:
        raise ValueError(f"{where}: {excerpt(digits)} is more than a point can hold")
    return number


def whole_numbers(columns: Sequence[str], where: str) -> list[int]:
    """The same of many columns of one line, quickly."""
    digits = "".join(columns)
    if digits.isascii() and digits.isdigit():
        numbers = [int(column) for column in columns]
        if max(numbers) <= INT64_MAX:
            return numbers
    raise ValueError(f"{where}: whole numbers are expected in {excerpt(' '.join(columns))}")


def table_lines(text: str, where: str) -> list[str]:
    """The lines of a table; ValueError where it is empty or ends in the middle of a line."""
    if not text.endswith("\n"):
        raise ValueError(f"{where}: {'cut off: ' + excerpt(text[-EXCERPT_CHARACTERS:]) if text else 'is empty'}")
    return text.splitlines()


def readable_name(name: str) -> str:
    """A name that the system listed, without bytes that are no text."""
    return os.fsencode(name).decode("utf-8", "replace")


def read_attribute(path: Path) -> str:
    """Text of a sysfs attribute. Raises OSError, and ValueError beyond `ATTRIBUTE_BYTES_MAX`."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(handle, ATTRIBUTE_BYTES_MAX + 1)  # sysfs gives an attribute whole in one read
    finally:
        os.close(handle)
    text = content.decode("utf-8", "replace")
    if len(content) > ATTRIBUTE_BYTES_MAX:
        raise ValueError(f"{path}: more than {ATTRIBUTE_BYTES_MAX} B, it begins with {excerpt(text)}")
    return text


def read_present(files: Mapping[str, Path]) -> tuple[dict[str, str], list[str]]:
    """Texts of those files that exist, and a sentence for each that exists and cannot be read."""
    texts, faults = {}, []
    for key, path in files.items():
        try:
            texts[key] = read_attribute(path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # this kernel or device has none, or the device was unplugged
        except OSError as error:
            faults.append(f"{path}: {error.strerror}")
        except ValueError as error:
            faults.append(str(error))
    return texts, faults


def reading_of(texts: Mapping[str, str], faults: Sequence[str], nothing: str) -> Reading:
    """A reading stamped now. With no text it fails as its faults say; without any fault it is `Unsupported(nothing)`."""
    if not texts and faults:
        raise OSError("; ".join(faults))
    if not texts:
        raise Unsupported(nothing)
    return reading_now(texts, tuple(faults))
