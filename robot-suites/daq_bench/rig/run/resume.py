"""`daq-bench resume RUN`: repeats the request of an interrupted run, from its own bundle.

The scenario and the requirements are the bundle's copies, so that an edit in between does not make it another experiment.
The inventory is the control node's own: connection details are in no bundle."""

from __future__ import annotations

from pathlib import Path

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.documents.run import AskedFor
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Request
from daq_bench.rig.checking.sealing import altered_evidence, sealed

PROFILES = ("profiles/scenarios", "profiles/requirements")


def asked_for(request: Request) -> AskedFor:
    """Returns run.json's `request`."""
    return AskedFor(
        inventory=str(request.inventory.resolve()) if request.inventory else None,
        scale=request.scale,
        duration_s=request.duration_s,
        target_directory=str(request.target_directory) if request.target_directory else None,
        influx_url=request.influx_url,
        keep_tuning=request.keep_tuning,
    )


def _altered_profiles(bundle: Bundle) -> list[str]:
    changes = altered_evidence(bundle.path) if sealed(bundle.path) else []
    return [change.name for change in changes if change.name.startswith(PROFILES)]


def request_of(bundle: Bundle) -> Request:
    """The same request again, its run to stand beside the interrupted one. Raises RefusedError when there is nothing to resume."""
    run = bundle.run
    if run.state == "finished":
        raise RefusedError(
            f"{bundle.path} is finished: there is nothing to resume. `daq-bench qualify` runs its scenario again"
        )
    if run.request is None:
        raise RefusedError(
            f"{bundle.path / 'run.json'} does not say what its run was asked for. Use `daq-bench qualify`"
        )
    altered = _altered_profiles(bundle)
    if altered:
        raise RefusedError(
            f"{bundle.path}: {', '.join(altered)} changed since the run, so that another experiment would be resumed. "
            "Use `daq-bench qualify` with profiles of your own"
        )
    asked, profiles = run.request, bundle.path / "profiles"
    return Request(
        candidate=run.candidate.name,
        target=run.target.name,
        scenario=str(profiles / "scenarios" / run.scenario.file),
        requirement=str(profiles / "requirements" / run.requirement.file),
        scale=asked.scale,
        duration_s=asked.duration_s,
        inventory=Path(asked.inventory) if asked.inventory else None,
        runs=bundle.path.parent,
        target_directory=Path(asked.target_directory) if asked.target_directory else None,
        influx_url=asked.influx_url,
        keep_tuning=asked.keep_tuning,
        challenge=run.challenge,
        resumes=bundle.id,
    )
