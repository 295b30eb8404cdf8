"""The door of check-bundle before tenders, trends and sites: forged runs are refused by name, unsigned ones are marked and never ranked."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.bundle.provenance import digest_in
from daq_bench.bench_model.documents.struct import moment
from daq_bench.bench_model.verdict.judging import SEALED, standing_of
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison.analysis import Asked, compare
from daq_bench.bench_report.reading.door import Trust as Reader
from daq_bench.rig.base.bundle import to_json
from daq_bench.rig.checking.door import Trust, admit
from daq_bench.rig.checking.own_profiles import Own
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.simulation.physics.drawing import spec_of
from daq_bench.simulation.run import simulate
from daq_bench.simulation.sample import finish_sample

GOOD = 3  # a seed whose run would pass
KEPT = ("scenarios", "requirements")  # the reader compares them with its own
RECORD, RAW = "results/snb_record.json", "results/raw"
STAMP = re.compile(r" (\d{19})$", re.MULTILINE)
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
    monkeypatch.delenv("ALLOWED_SIGNERS", raising=False)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    run = simulate(spec_of(GOOD), tmp_path_factory.mktemp("simulated"))
    assert run.bundle
    yield finish_sample(run.bundle, rendered=False)


@pytest.fixture(scope="module")
def own(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Own:
    """The reader's own profiles: those that the simulation asked for."""
    run = json.loads((simulated / "run.json").read_text(encoding="utf-8"))
    kept = tmp_path_factory.mktemp("own")
    files = {
        kind: simulated / "profiles" / f"{kind}s" / f"{run[kind]['id']}.yml" for kind in ("scenario", "requirement")
    }
    return Own(**{kind: Path(shutil.copy(file, kept / f"{kind}.yml")) for kind, file in files.items()})


def reader(own: Own, **more: Any) -> Reader:
    return Reader(scenario=str(own.scenario), requirement=str(own.requirement), **more)


def forged(
    bundle: Path,
    runs: Path,
    contender: str,
    days: int,
    factor: float = 1.0,
    everywhere: bool = True,
    mark: bool = False,
) -> Path:
    """The bundle as a run of another server on another day, sealed again. `everywhere`: also in what its tools said."""
    run = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    shift = timedelta(days=days)
    began = moment(run["started_utc"]) + shift
    name = f"{began:%Y%m%dT%H%M%SZ}-{contender}-{run['scenario']['id']}"
    made = Path(shutil.copytree(bundle, runs / name))
    renamed = {
        run["run_id"]: name,
        **{one["serial"]: f"{contender[:3].upper()}{one['serial']}" for one in run["target"]["drives"]},
    }
    for file in set(made.rglob("*")) - {made / "profiles/metrics.yml"}:
        if (
            file.is_file()
            and file.parent.name not in KEPT
            and (everywhere or not file.is_relative_to(made / "results" / "raw"))
        ):
            text = file.read_text(encoding="utf-8")
            for one, other in renamed.items():
                text = text.replace(one, other)
            text = STAMP.sub(lambda found: f" {int(found[1]) + days * 86_400 * 10**9 + 7}", text)
            if everywhere or file.suffix != ".lp":
                text = UTC.sub(lambda found: later(found[0], shift), text)
            file.write_text(text, encoding="utf-8")
    if everywhere:
        journals_renewed(bundle / RAW, made / RAW)
    told = json.loads((made / "run.json").read_text(encoding="utf-8"))
    told["candidate"]["name"] = contender
    if not mark:
        del told["simulated"]
    (made / "run.json").write_text(to_json(told), encoding="utf-8")
    lab = made / "profiles/lab.yml"
    lab.write_text(
        re.sub(r"^(\s*)simulated:", rf"\1{contender}:", lab.read_text(encoding="utf-8"), flags=re.MULTILINE),
        encoding="utf-8",
    )
    if factor != 1.0:
        times(made / RECORD, factor)
    (made / "verdict.json").unlink()
    conclude(made)
    return made


def journals_renewed(before: Path, after: Path) -> None:
    """Each workload's list of what its tools left names the files as they are now."""
    digests = {digest_in(before, file.name): digest_in(after, file.name) for file in after.iterdir()}
    for journal in after.glob("*-journal.jsonl"):
        text = journal.read_text(encoding="utf-8")
        for one, other in digests.items():
            text = text.replace(one, other)
        journal.write_text(text, encoding="utf-8")


def later(utc: str, shift: timedelta) -> str:
    return (moment(utc) + shift).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def times(file: Path, factor: float) -> None:
    def scaled(node: Any, rate: bool = False) -> Any:
        if isinstance(node, dict):
            return {key: scaled(one, key in ("read_bytes_per_s", "stored_bytes_per_s")) for key, one in node.items()}
        if isinstance(node, list):
            return [scaled(one, rate) for one in node]
        return node * factor if rate and isinstance(node, float) else node

    before = json.loads(file.read_text(encoding="utf-8"))
    after = scaled(before)
    assert after != before
    file.write_text(to_json(after), encoding="utf-8")


def conclude(bundle: Path) -> None:
    """Judged and sealed by whoever has no key."""
    from daq_bench.bench_model.verdict.judging import judge_bundle
    from daq_bench.rig.base.bundle import Bundle

    Bundle.open(bundle).write("verdict.json", judge_bundle(bundle))
    seal_evidence(bundle)
    standing = standing_of(bundle)
    assert standing.state == SEALED, standing.reason


def test_a_simulated_run_passes_the_door_with_its_marks(simulated: Path, own: Own) -> None:
    (found,) = admit([simulated], Trust(own=own))
    assert (found.problems, found.not_extracted, found.different) == ([], [], [])
    assert found.marks == ("unsigned",)
    assert "--accept-unsigned" in found.unrankable(False) and found.unrankable(True) == ""


def test_it_is_different_from_the_profiles_of_another_reader(simulated: Path) -> None:
    (found,) = admit([simulated], Trust())
    assert found.different and found.marks[1].startswith("different from yours: ")
    assert "different from yours" in found.unrankable(True)


def test_the_forged_tender_is_refused_by_name(simulated: Path, own: Own, tmp_path: Path) -> None:
    """Whatever the reader accepts: who made the forger 1.4 times as fast everywhere but in what its tools said."""
    roots = [forged(simulated, tmp_path, "honest", 1), forged(simulated, tmp_path, "forger", 4, 1.4)]
    with pytest.raises(BundleError) as refused:
        compare(Asked(tuple(roots), trust=reader(own, accept_unsigned=True)))
    assert f"{roots[1].name} does not pass check-bundle" in str(refused.value)
    assert f"{RECORD}: cannot be extracted again" in str(refused.value)
    assert "results/record_power.json: differs from what the bundle's telemetry and results give" in str(refused.value)


def test_a_run_whose_dates_were_moved_is_refused_by_name(simulated: Path, own: Own, tmp_path: Path) -> None:
    """Its tools still say when it was, and its points of which run they are."""
    moved = forged(simulated, tmp_path, "moved", 365, everywhere=False)
    (found,) = admit([moved], Trust(own=own))
    told = "\n".join(found.problems)
    said = r"results/raw/minidaq-1\.json: started_utc is 2026-09-21 [\d:]+ UTC, but by run\.json the run was from 2027-09-21"
    assert re.search(said, told), told
