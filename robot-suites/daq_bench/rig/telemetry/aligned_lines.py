"""The history's further data of a finished run, besides verdict and events: its main series on a common clock, and its BUSY times."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.behaviour import aligned
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.event_lines import span_line, string, tag


def aligned_lines(bundle: Bundle) -> Iterator[str]:
    """Yields the measurement `aligned_run`: two runs are compared by it (reports/daq_bench/bench_dashboards/boards/compare.py).

    One series for a run, for ever: loads are told apart by a field, drives by the names of fields. Two loads have points of one time, of
    which InfluxDB would keep one; so those of the n-th load come n - 1 ns later. Steps are whole milliseconds."""
    head = f"aligned_run,host={tag(bundle.run.candidate.name)},run={tag(bundle.id)}"
    places: dict[str, int] = {}
    for point in aligned.points(bundle.path, as_document(bundle.run)):
        device = f"{tag(point.device)}_" if point.device else ""
        fields = ",".join(f"{device}{name}={value!r}" for name, value in point.fields.items())
        later_ns = places.setdefault(point.load, len(places))
        yield f"{head} load={string(point.load)},{fields} {point.time_ns + later_ns}"


def busy_lines(bundle: Bundle) -> Iterator[str]:
    """Yields each time that a record's dataflow was BUSY, as a span: only the record's own account knows them."""
    host = f",host={tag(bundle.run.candidate.name)}"
    for begin_s, end_s, text in aligned.busy_spans(bundle.path):
        line = span_line(bundle.id, "busy", "snb_record", text, round(begin_s * 1e9), round(end_s * 1e9))
        yield line.replace("bench_event", f"bench_event{host}", 1)
