"""The history's further data of a finished run, besides verdict and events: its main series on a common clock, and its BUSY times."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.behaviour import aligned
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.event_lines import span_line, tag


def aligned_lines(bundle: Bundle) -> Iterator[str]:
    """Yields the measurement `aligned`: two runs are compared by it (reports/daq_bench/bench_dashboards/boards/compare.py)."""
    head = f"aligned,host={tag(bundle.run.candidate.name)},run={tag(bundle.id)}"
    for point in aligned.points(bundle.path, as_document(bundle.run)):
        device = f",device={tag(point.device)}" if point.device else ""
        fields = ",".join(f"{name}={value!r}" for name, value in point.fields.items())
        yield f"{head}{device},load={tag(point.load)} {fields} {point.time_ns}"


def busy_lines(bundle: Bundle) -> Iterator[str]:
    """Yields each time that a record's dataflow was BUSY, as a span: only the record's own account knows them."""
    host = f",host={tag(bundle.run.candidate.name)}"
    for begin_s, end_s, text in aligned.busy_spans(bundle.path):
        line = span_line(bundle.id, "busy", "snb_record", text, round(begin_s * 1e9), round(end_s * 1e9))
        yield line.replace("bench_event", f"bench_event{host}", 1)
