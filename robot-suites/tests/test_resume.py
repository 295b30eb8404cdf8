"""`daq-bench resume`: the requests that it repeats or refuses. The runs themselves are in test_endurance_resume.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import candidate, scenario, some_run, target

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.documents.run import RequirementOfRun
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Request
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.rig.cli import main
from daq_bench.rig.run.record import asked_for, request_of

ASKED = Request(inventory=Path("/lab.yml"), scale=0.5, duration_s=7.0, target_directory=Path("/disk"), keep_tuning=True)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    made = Bundle.create(tmp_path, "server", "nvme", "mine")
    made.begin(
        some_run(
            state="interrupted",
            candidate=candidate("server"),
            target=target(name="nvme"),
            scenario=scenario(file="mine.yml"),
            requirement=RequirementOfRun("bounds", file="bounds.yml"),
            request=asked_for(ASKED),
        )
    )
    for kind, name in (("scenarios", "mine"), ("requirements", "bounds")):
        (made.path / "profiles" / kind).mkdir()
        (made.path / "profiles" / kind / f"{name}.yml").write_text(f"id: {name}\n", encoding="utf-8")
    return made


def test_the_same_is_asked_for_again_from_the_bundles_own_profiles(bundle: Bundle) -> None:
    request = request_of(bundle)
    profiles = bundle.path / "profiles"
    assert (request.candidate, request.target, request.resumes) == ("server", "nvme", bundle.id)
    assert request.scenario == str(profiles / "scenarios" / "mine.yml")
    assert request.requirement == str(profiles / "requirements" / "bounds.yml")
    assert (request.scale, request.duration_s, request.keep_tuning) == (0.5, 7.0, True)
    assert (request.inventory, request.target_directory) == (Path("/lab.yml"), Path("/disk"))
    assert request.runs == bundle.path.parent


@pytest.mark.parametrize("state", ["running", "interrupted", "error"])
def test_a_killed_bench_leaves_a_run_that_can_be_resumed_too(bundle: Bundle, state: str) -> None:
    bundle.save_run(state=state)
    assert request_of(bundle).resumes == bundle.id


def test_a_finished_run_is_refused(bundle: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    bundle.save_run(state="finished")
    assert main(["resume", str(bundle.path)]) == 2
    assert (
        "is finished: there is nothing to resume. `daq-bench qualify` runs its scenario again"
        in capsys.readouterr().err
    )


def test_changed_profiles_are_another_experiment(bundle: Bundle) -> None:
    seal_evidence(bundle.path)
    assert request_of(bundle).resumes == bundle.id
    (bundle.path / "profiles" / "scenarios" / "mine.yml").write_text("id: other\n", encoding="utf-8")
    with pytest.raises(RefusedError, match=r"profiles/scenarios/mine\.yml changed since the run"):
        request_of(bundle)


def test_a_bundle_of_an_older_bench_says_what_to_do(bundle: Bundle) -> None:
    bundle.save_run(request=None)
    with pytest.raises(RefusedError, match=r"does not say what its run was asked for\. Use `daq-bench qualify`"):
        request_of(bundle)


def test_what_is_no_bundle_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(tmp_path)]) == 2
    assert "is no run bundle" in capsys.readouterr().err
