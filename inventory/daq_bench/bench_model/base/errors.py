"""Errors that a user is meant to read: each names its object and its remedy; the command line prints them without a traceback."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class BenchError(Exception):
    """The bench cannot go on. Ends a command with outcome ERROR and exit status 2."""


class RefusedError(BenchError):
    """A safety or capacity check said no, before anything was written."""


class InterruptedRunError(BenchError):
    """The operator stopped the run (Ctrl-C or SIGTERM)."""


@dataclass(frozen=True)
class Place:
    """Describes where in a user's file something is wrong. `line` counts from 1; 0 means that the line is unknown."""

    file: Path
    line: int
    field: str

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        field = f": {self.field}" if self.field else ""
        return f"{self.file}{line}{field}"


class ProfileError(BenchError):
    """A user's YAML is wrong: names file, line, field, problem and remedy."""

    def __init__(self, place: Place, problem: str, remedy: str, more: int = 0) -> None:
        self.place = place
        self.problem = problem
        self.remedy = remedy
        others = f" ({more} more problem{'s' if more > 1 else ''} in this file)" if more else ""
        super().__init__(f"{place}: {problem}. {remedy}{others}")


def in_words(error: Exception) -> str:
    """An error in words: the system's own without their number, and with the file that they are about; a byte that is no text."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} (0x{error.object[error.start]:02x}) is no UTF-8"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def writable(name: str) -> str:
    """A file's name as a document can hold it: bytes that are no UTF-8 as escapes. A name that is UTF-8 is returned as it is."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
