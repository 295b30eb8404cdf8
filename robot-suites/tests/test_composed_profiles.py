"""A bundle holds its profiles whole, with the files that they were put together from: it can be judged, resumed and checked anywhere."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import scenario, some_run

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.run import RequirementOfRun, Run
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout, Profiles, Request, load_profiles
from daq_bench.rig.checking.own_profiles import Own, altered_parameters, compared
from daq_bench.rig.run.record import copy_profiles

LAYOUT = Layout()
METRICS = load_metrics(LAYOUT.inventory / "metrics.yml")
FOLDERS = {"scenarios": load_scenario, "requirements": lambda file, **how: load_requirements(file, METRICS, **how)}


def copied(folder: Path, request: Request) -> tuple[Bundle, Profiles, Run]:
    profiles = load_profiles(request, LAYOUT)
    bundle = Bundle.create(folder, "this-machine", "", "composed")
    copy_profiles(bundle, profiles)
    run = some_run(
        scenario=scenario(profiles.scenario.id, parameters=profiles.scenario.document),
        requirement=RequirementOfRun(profiles.requirement.id),
    )
    return bundle, profiles, run


@pytest.fixture(params=["thread-scan", "snb-120s", "streams-checksum-rehearsal", "scans-emulated", "minidaq-scan"])
def composed(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Bundle, Profiles, Run]:
    return copied(tmp_path, Request(scenario=request.param))


def test_the_copy_is_the_whole_and_says_from_which_files(composed: tuple[Bundle, Profiles, Run]) -> None:
    bundle, profiles, run = composed
    stored, own = bundle.path / "profiles", LAYOUT.inventory
    for folder, load in FOLDERS.items():
        (file,) = (stored / folder).iterdir()
        again, before = asdict(load(file, stored=True)), asdict(load(own / folder / file.name))
        assert {**again, "file": None} == {**before, "file": None}
        text = file.read_text(encoding="utf-8")
        for taken in ("extends", "include"):
            assert f"\n{taken}:" not in text
    if profiles.scenario.id == "thread-scan":
        digest = hashlib.sha256((own / "requirements" / "dune-scans.yml").read_bytes()).hexdigest()
        text = (stored / "requirements" / "thread-scan.yml").read_text(encoding="utf-8")
        assert f"#   dune-scans.yml, SHA-256 {digest}" in text
    (bundle.path / "run.json").unlink(missing_ok=True)
    (bundle.path / "run.json").write_text(json.dumps(as_document(run)), encoding="utf-8")
    assert Evidence.load(bundle.path).scenario == load_scenario(profiles.scenario.file).document


def test_the_checker_finds_its_own_profiles_the_same(composed: tuple[Bundle, Profiles, Run]) -> None:
    bundle, _, run = composed
    assert [one.differences for one in compared(bundle.path, run, Own())] == [(), ()]
    assert altered_parameters(bundle.path, run) == []


def test_a_bound_that_was_loosened_in_an_included_requirement_is_different_from_yours(tmp_path: Path) -> None:
    bundle, _, run = copied(tmp_path, Request(scenario="thread-scan"))
    file = bundle.path / "profiles" / "requirements" / "thread-scan.yml"
    file.write_text(file.read_text(encoding="utf-8").replace("bound: 4\n", "bound: 1\n"), encoding="utf-8")
    told = [one.text for profile in compared(bundle.path, run, Own()) for one in profile.differences]
    assert told == ["requirement thread-scan: requirements.SCAN-05.bound is 1, yours 4"]


def test_a_bundle_from_before_holds_the_same_text_without_origins(tmp_path: Path) -> None:
    """A profile that stands alone is copied as it is, as all were."""
    bundle, _, run = copied(tmp_path, Request(scenario="dune-snb"))
    for folder in FOLDERS:
        (file,) = (bundle.path / "profiles" / folder).iterdir()
        assert file.read_bytes() == (LAYOUT.inventory / folder / file.name).read_bytes()
    assert altered_parameters(bundle.path, run) == []


def test_a_bundle_cannot_have_its_profile_completed_by_the_checkers_files(tmp_path: Path) -> None:
    bundle, _, _ = copied(tmp_path, Request(scenario="thread-scan"))
    file = bundle.path / "profiles" / "requirements" / "thread-scan.yml"
    file.write_bytes((LAYOUT.inventory / "requirements" / "thread-scan.yml").read_bytes())
    with pytest.raises(ProfileError, match=r"include: stands in a stored profile, which must be whole"):
        load_requirements(file, METRICS, stored=True)
