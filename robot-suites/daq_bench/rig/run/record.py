"""run.json's account of a run at its start: candidate, target, demand, versions, git. Pure but for `git` and `/proc`."""

from __future__ import annotations

import hashlib
import platform
import shutil
from importlib import metadata
from pathlib import Path

import msgspec
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.documents.run import (
    FINISHED,
    AskedFor,
    CandidateOfRun,
    DemandOfRun,
    Git,
    Host,
    RequirementOfRun,
    Run,
    ScenarioOfRun,
    TargetOfRun,
)
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.evidence.admissibility import scaled_down
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.composed import Requirements, Scenarios, read_requirements, read_scenario
from daq_bench.bench_model.profiles.published import FOLDER
from daq_bench.rig.base.bundle import Bundle, now_utc
from daq_bench.rig.base.settings import Profiles, Request
from daq_bench.rig.base.shell import Shell
from daq_bench.rig.candidate.disclosure import disclosed
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.checking.sealing import altered_evidence, sealed
from daq_bench.rig.workloads.registry import declared_limits

PACKAGES = ("robotframework", "ansible-core", "influxdb-client", "scipy", "matplotlib", "weasyprint")


def first_run(bundle: Bundle, profiles: Profiles, found: Survey, scratch: Path, directory: Path) -> Run:
    """The first run.json; later stages add to it. `found` may know no target yet: `target_of` then follows."""
    return planned_run(bundle.id, profiles, found.host, target_of(profiles.candidate, found, scratch, directory))


def planned_run(run_id: str, profiles: Profiles, host: Host, target: TargetOfRun) -> Run:
    """run.json as it is before anything is done."""
    candidate, scenario, requirement = profiles.candidate, profiles.scenario, profiles.requirement
    run = Run(
        schema_version=1,
        run_id=run_id,
        state="running",
        state_reason=None,
        started_utc=now_utc(),
        finished_utc=None,
        candidate=CandidateOfRun(
            name=candidate.name,
            description=candidate.description,
            transient_buffer_bytes=candidate.transient_buffer_bytes,
            virtual=candidate.virtual,
            connection=candidate.connection,
            **as_document(host),
        ),
        target=target,
        scenario=ScenarioOfRun(
            id=scenario.id,
            title=scenario.title,
            file=scenario.file.name,
            scale=scenario.scale,
            seed=scenario.seed,
            repetitions=scenario.repetitions,
            repetitions_max=scenario.repetitions_max,
            parameters=scenario.document,
        ),
        requirement=RequirementOfRun(requirement.id, requirement.title, requirement.file.name),
        demand=DemandOfRun.of(scenario.demand) if scenario.demand.links else None,
        declared_limits=declared_limits(scenario),
    )
    return msgspec.structs.replace(run, scaled_down=scaled_down(run, requirement.conditions))


def target_of(candidate: Candidate, found: Survey, scratch: Path, directory: Path) -> TargetOfRun:
    """run.json's `target`; what is beneath it is None until provisioning has made it."""
    chosen, device = candidate.target, found.target.device if found.target else None
    return TargetOfRun(
        kind=chosen.kind,
        filesystem=found.target.filesystem if found.target else None,
        drives=found.drives_of(device),
        name=chosen.name,
        directory=str(directory),
        path=str(scratch),
        device=device,
    )


def copy_profiles(bundle: Bundle, profiles: Profiles) -> None:
    """Copies the profiles that the verdict rests on, so that the bundle can be judged anywhere.

    Only this candidate's `bench_candidate` is copied of the inventory, without the way to its BMC: vendors get the bundle."""
    folder = bundle.path / "profiles"
    for kind, source in (
        ("scenarios", read_scenario(profiles.scenario.file)),
        ("requirements", read_requirements(profiles.requirement.file)),
    ):
        (folder / kind).mkdir(exist_ok=True)
        _copy_profile(source, folder / kind / source.file.name)
    shutil.copyfile(profiles.metrics_file, folder / "metrics.yml")
    shutil.copytree(profiles.metrics_file.parent / FOLDER, folder / FOLDER)
    entry = {
        "ansible_connection": profiles.candidate.connection,
        "bench_candidate": disclosed(profiles.candidate.document),
    }
    hosts = {profiles.candidate.name: entry}
    with (folder / "lab.yml").open("w", encoding="utf-8") as file:
        YAML().dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, file)


def _copy_profile(source: Scenarios | Requirements, copy: Path) -> None:
    """Copies the file itself, or, where it takes from others, the whole that was put together from them."""
    if len(source.files) == 1:
        shutil.copyfile(source.file, copy)
        return
    origins = [f"#   {file.name}, SHA-256 {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in source.files]
    with copy.open("w", encoding="utf-8") as stream:
        print("# Put together by the run from:", *origins, sep="\n", file=stream)
        YAML().dump(plain(source.data), stream)


def git_state(shell: Shell, repository: Path) -> Git:
    """Both None outside of a git checkout."""
    if not (repository / ".git").exists() or shutil.which("git") is None:
        return Git(None, None)
    head = shell.run(["git", "-C", repository, "rev-parse", "HEAD"], timeout_s=20)
    status = shell.run(["git", "-C", repository, "status", "--porcelain"], timeout_s=60)
    if head.returncode or status.returncode:
        return Git(None, None)
    return Git(head.stdout.strip(), bool(status.stdout.strip()))


def versions(influx: str | None) -> dict[str, str]:
    """Versions on the control node; those of the candidate are in facts/versions.json."""
    found = {"python": platform.python_version(), "kernel": platform.release()}
    found |= {name: metadata.version(name) for name in PACKAGES}
    if influx:
        found["influxdb"] = influx
    return found


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
    if run.state == FINISHED:
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
