"""Reads the events in the order of time."""

from __future__ import annotations

from pathlib import Path

from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_report.base.fields import parse_document, read_text


def read_events(root: Path, name: str) -> tuple[Event, ...]:
    """Every event in time order. A last line without its newline is an interrupted run's torn end."""
    text = read_text(root, name) or ""
    lines = text.split("\n")[:-1]
    nodes = (parse_document(line, f"{name}: line {number}") for number, line in enumerate(lines, 1) if line)
    return tuple(sorted((node.typed(Event) for node in nodes), key=lambda event: event.time))
