"""Tells how a run ends when the candidate was given back: derive, judge, render, seal, publish."""

from __future__ import annotations

from collections.abc import Callable

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.column_file import write_columns
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.evidence import derived
from daq_bench.bench_model.verdict.judging import VERDICT, judge_bundle
from daq_bench.rig.base.bundle import Bundle, write_atomically
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.checking.reporting import render_and_seal
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.rig.checking.signing import Signer
from daq_bench.rig.run.progress import announce
from daq_bench.rig.telemetry.history import publish, set_aside

Say = Callable[[str], None]


def derive(bundle: Bundle) -> None:
    """Derives the documents from the finished run's telemetry and results."""
    made, faults = derived.documents(bundle.path)
    for name, document in made.items():
        bundle.write(name, document)
    for fault in faults:
        text = f"a fault of the bench: {fault.name} could not be made ({fault.reason}); its traceback is in error.txt"
        bundle.event("error", "derive", text)
        write_atomically(bundle.path / "error.txt", fault.traceback)
        if bundle.run.state == FINISHED:
            bundle.save_run(state="error", state_reason=text)


def conclude(bundle: Bundle, signer: Signer | None, influx: Influx | None, say: Say) -> Verdict:
    """Judges, renders and seals. A report that cannot be rendered does not take the verdict away."""
    verdict = judge_bundle(bundle.path)
    bundle.write(VERDICT, verdict)
    bundle.event("verdict", "judge", verdict.outcome, reasons=verdict.reasons)
    rendered = bundle.run.state != "interrupted"
    if rendered:
        announce(bundle, "report", "sealing the evidence, rendering report.html and report.pdf")
    bundle.end_phase()
    _seal(bundle, rendered, signer, say)
    problem = publish(bundle.path, influx) if influx and bundle.run.telemetry else None
    if problem:
        say(f"warning: the verdict is not in InfluxDB ({problem}); the next run or `daq-bench replay` delivers it")
    if refused := set_aside(bundle.path):
        say(f"warning: {refused}")
    return verdict


def _seal(bundle: Bundle, rendered: bool, signer: Signer | None, say: Say) -> None:
    """The evidence first, because the reports carry its hash. A key that fails now leaves the run unsigned, and says so."""
    try:
        write_columns(bundle.path)
    except ValueError as error:
        say(f"warning: {error}")  # what cannot be read is refused by the report, with the same words
    try:
        seal_evidence(bundle.path, signer)
    except BenchError as error:
        signer = None
        say(f"warning: the run is not signed: {error}")
    if not rendered:
        return
    try:
        problem = render_and_seal(bundle.path, signer)
    except BenchError as error:
        problem = str(error)
    if problem:
        say(f"warning: {problem}")
