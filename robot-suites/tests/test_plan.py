"""`daq-bench plan` says of a request: its cost, what has to be agreed to, and whether it can end in PASS."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError, ProfileError, RefusedError
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.composed import read_scenario
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.settings import DEFAULT_PROFILE, Layout, Request, load_profiles
from daq_bench.rig.base.terminal import agree
from daq_bench.rig.cli import main
from daq_bench.rig.nightly.plan import load_plan
from daq_bench.rig.run.plan_table import BEGIN, END, table
from daq_bench.rig.run.planning import Reason, RunPlan, plan_run
from daq_bench.rig.run.preflight import space_needs
from daq_bench.rig.workloads.registry import WORKLOADS, workloads_of
from daq_bench.rig.workloads.shared.plan import Ground, duration_of, written_by

LAYOUT = Layout()
SAMPLE = LAYOUT.inventory / "sample.yml"
TB = 10**12


def planned(scenario: str, inventory: Path = SAMPLE, candidate: str = "sample", **more: Any) -> RunPlan:
    rate = more.pop("rate", None)
    request = Request(candidate, scenario=scenario, inventory=inventory, **more)
    return plan_run(load_profiles(request, LAYOUT), LAYOUT, None, rate)


def altered(folder: Path, change: Any, file: Path = SAMPLE, name: str = "sample") -> Path:
    """A copy of an inventory with a changed entry."""
    yaml = YAML(typ="safe")
    document = yaml.load(file)
    change(document["all"]["children"]["candidates"]["hosts"][name]["bench_candidate"])
    copy = folder / "lab.yml"
    yaml.dump(document, copy)
    return copy


def test_the_default_rehearsal_writes_at_most_40_gb_in_two_minutes_and_needs_nobodys_word() -> None:
    plan = plan_run(load_profiles(Request(), LAYOUT), LAYOUT)
    assert plan.bytes_written is not None and plan.bytes_written <= 40e9
    assert plan.duration_s is not None and plan.duration_s <= 120
    assert plan.consent == "" and plan.erases == ()


def test_the_reasons_against_a_rehearsals_pass_are_the_verdicts_own_each_with_its_remedy() -> None:
    plan = plan_run(load_profiles(Request(), LAYOUT), LAYOUT)
    said = {one.reason: one.remedy for one in plan.reasons}
    assert not plan.can_pass
    assert said["The load is 0.1 of one readout unit: 0.9243 GB/s offered of 9.243 GB/s"] == "--scale 1"
    (scratch,) = [remedy for reason, remedy in said.items() if reason.startswith("The target is a scratch file")]
    assert "target of kind filesystem or raw-device" in scratch
    (record,) = [remedy for reason, remedy in said.items() if reason.startswith("snb_record asks for less")]
    assert "--scenario " in record and "snb-100s" in record
    (few,) = [remedy for reason, remedy in said.items() if reason.startswith("SNB-07")]
    assert few.startswith("Ask for 6 repetitions")


def test_a_single_drive_gets_all_bytes_and_a_stripe_shares_them_out() -> None:
    one, stripe = planned("read-scan"), planned("read-scan", target="nand-raid0")
    (drive,) = one.drives
    assert one.bytes_written == 32 * 2**30 == drive.bytes_written
    assert one.drive_writes == pytest.approx(32 * 2**30 / 7.68e12)
    assert [share.bytes_written for share in stripe.drives] == [pytest.approx(32 * 2**30 / 3)] * 3
    assert stripe.drive_writes == pytest.approx((one.drive_writes or 0) / 3)
    assert stripe.erases == ("SAMPLE2", "SAMPLE3", "SAMPLE4")


def test_parity_is_written_besides_and_a_set_goes_as_far_as_its_smallest_drive(tmp_path: Path) -> None:
    def smaller(entry: Any) -> None:
        entry["identity"]["drives"][3]["capacity"] = "3.84TB"

    parity = planned("read-scan", target="nand-raid5")
    assert [share.bytes_written for share in parity.drives] == [pytest.approx(16 * 2**30)] * 3
    unequal = planned("read-scan", altered(tmp_path, smaller), target="nand-raid0")
    writes = {share.serial: share.drive_writes for share in unequal.drives}
    assert writes["SAMPLE4"] == pytest.approx(2 * (writes["SAMPLE3"] or 0)) == unequal.drive_writes
    whole = plan_of_workload("steady-state", Ground(capacity_bytes=3 * int(3.84 * TB), raw=True))
    assert whole[1] is not None and whole[1] > 2 * 3 * 3.84 * TB


def plan_of_workload(scenario: str, ground: Ground) -> tuple[float | None, float | None]:
    loaded = load_scenario(LAYOUT.inventory / "scenarios" / f"{scenario}.yml")
    steps = [step for workload in workloads_of(loaded) for step in workload.plan(loaded, ground)]
    return duration_of(steps), written_by(steps)


def test_an_unknown_capacity_is_said_and_never_a_number(tmp_path: Path) -> None:
    def unknown(entry: Any) -> None:
        for drive in entry["identity"]["drives"]:
            del drive["capacity"]

    inventory = altered(tmp_path, unknown)
    plan = planned("saturation", inventory, target="raw")
    assert (plan.bytes_written, plan.drive_writes, plan.duration_s) == (None, None, None)
    text = "\n".join(plan.lines())
    assert "time     unknown" in text and "its capacity is not stated" in text
    document = json.loads(json.dumps(plan.as_document(), allow_nan=False))
    assert document["bytes_written"] is None and document["drives"][0]["capacity_bytes"] is None
    assert "an unknown amount" in plan.consent


SHIPPED = sorted(
    file.stem for file in (LAYOUT.inventory / "scenarios").glob("*.yml") if not file.stem.startswith("raid")
)


@pytest.mark.parametrize("scenario", SHIPPED)
def test_no_plan_for_a_machine_without_declared_drives_exceeds_its_write_budget_or_prints_an_empty_amount(
    scenario: str,
) -> None:
    profiles = load_profiles(Request("this-machine", scenario=scenario), LAYOUT)
    plan = plan_run(profiles, LAYOUT)
    text = "\n".join(plan.lines())
    assert not re.search(r"\b0 B\b|\(\)|e\+\d|unknown at most", text), text
    for parameters in profiles.scenario.workloads.values():
        assert (plan.bytes_written or 0) <= parameters.get("write_budget", float("inf"))


@pytest.mark.parametrize("capacity", [None, float("nan"), 0, "0GB", "0.3B", "7.68T", -1, True])
def test_a_capacity_that_is_none_is_refused_with_its_place(tmp_path: Path, capacity: Any) -> None:
    def wrong(entry: Any) -> None:
        entry["identity"]["drives"][0]["capacity"] = capacity

    with pytest.raises(ProfileError, match=r"lab.yml:\d+: .*drives\[0\]\.capacity"):
        load_candidate(altered(tmp_path, wrong), "sample")


def test_a_published_device_gives_capacity_rate_and_endurance(tmp_path: Path) -> None:
    def published(entry: Any) -> None:
        del entry["identity"]["drives"][0]["capacity"]
        entry["targets"]["reference"]["declared"] = {"published": "micron-9550-max"}

    plan = planned("latency-under-load", altered(tmp_path, published))
    (drive,) = plan.drives
    assert drive.capacity_bytes == 6.4 * TB and drive.rated_bytes == 35040 * TB
    assert plan.rate_bytes_per_s == 10e9 and "Micron 9550 product brief" in plan.rate_basis
    assert drive.endurance_share == pytest.approx((plan.bytes_written or 0) / 35040e12)
    # Beyond what the drive takes nothing is written: the rung of 1.25 units offers 11.55 GB/s.
    offered = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.05, 1.1, 1.25]
    assert plan.bytes_written == pytest.approx(sum(30 * min(9.24288e9 * share, 10e9) for share in offered), rel=1e-6)


def test_a_stated_rate_scales_what_a_closed_loop_writes_and_not_what_a_record_does() -> None:
    slow, fast = planned("block-scan", rate=1e9), planned("block-scan", rate=4e9)
    assert (fast.bytes_written or 0) / (slow.bytes_written or 1) == pytest.approx(4, rel=0.5)
    assert planned("raid-vs-3dxp", rate=2e9).bytes_written == planned("raid-vs-3dxp", rate=4e9).bytes_written


def test_the_most_that_is_written_is_only_told_where_it_is_known() -> None:
    """A set of eight drives takes five times the assumed rate, and a scan that lasts a stated time writes five times as much."""
    assumed, stated = (
        next(one for one in planned("block-scan", rate=rate).lines() if one.startswith("writes"))
        for rate in (None, 50e9)
    )
    assert assumed.startswith("writes   34.85 TB at that rate; a faster target is written more")
    assert stated.startswith("writes   18") and stated.endswith(" TB at most")
    assert "at most" in "\n".join(planned("raid-vs-3dxp").lines_in_short()), "it writes a stated size"


def test_a_scenario_without_repetitions_measures_once_and_decides_nothing(tmp_path: Path) -> None:
    yaml = YAML(typ="safe")
    document = yaml.load(LAYOUT.inventory / "scenarios" / "read-scan.yml")
    del document["repetitions"]
    file = tmp_path / "read-scan.yml"
    yaml.dump(document, file)
    plan = planned(str(file))
    assert any("READ-01" in one.reason and "measured once" in one.reason for one in plan.reasons)
    assert planned("read-scan").can_pass


def test_a_profile_without_a_mandatory_requirement_can_pass_nothing(tmp_path: Path) -> None:
    text = (LAYOUT.inventory / "requirements" / "read-scan.yml").read_text(encoding="utf-8")
    file = tmp_path / "read-scan.yml"
    file.write_text(text.replace("severity: mandatory", "severity: advisory"), encoding="utf-8")
    (reason,) = planned("read-scan", requirement=str(file)).reasons
    assert reason.reason.startswith("The requirement profile has no mandatory requirement")


def test_what_preflight_would_refuse_is_a_reason(tmp_path: Path) -> None:
    def small(entry: Any) -> None:
        entry["identity"]["drives"][0]["capacity"] = "480GB"
        entry["transient_buffer"] = "1GiB"

    plan = planned("snb-100s", altered(tmp_path, small))
    said = {one.reason: one.remedy for one in plan.reasons}
    assert any("is too small: the record of 9.243 GB/s" in reason for reason in said)
    assert any("5.369 GB" in reason and "declare more" in remedy for reason, remedy in said.items())


def test_requests_that_qualify_refuses_are_refused_with_their_words() -> None:
    with pytest.raises(ProfileError, match="does not yield"):
        planned("read-scan", requirement="minidaq-scan")
    with pytest.raises(BenchError, match="--scale"):
        planned("snb-100s", scale=-1.0)
    with pytest.raises(BenchError, match="has no target 'nowhere'"):
        planned("snb-100s", target="nowhere")
    assert main(["plan", "--duration", "10", "--scenario", "no-such"]) == 2
    with pytest.raises(SystemExit):
        main(["plan", "--duration", "0"])


def test_a_plan_is_the_same_twice_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", "--inventory", str(SAMPLE), "--candidate", "sample", "--scenario", "snb-100s", "--json"]
    said = []
    for _ in range(2):
        assert main(argv) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    document = json.loads(said[0])
    assert {"duration_s", "bytes_written", "drive_writes", "can_pass", "reasons", "runs"} == document.keys()
    assert document["can_pass"] is True and document["reasons"] == []
    assert document["runs"][0]["erases"] == ["SAMPLE1"] and document["drive_writes"] < 3


def test_scale_and_duration_scale_the_record() -> None:
    whole, part = planned("snb-100s"), planned("snb-100s", scale=0.1, duration_s=10.0)
    records = [
        sum(step.times * (step.bytes_written or 0) for _, step in plan.steps if step.name.startswith("record"))
        for plan in (whole, part)
    ]
    assert records[1] == pytest.approx(records[0] / 100, rel=1e-6)
    assert not part.can_pass


SCENARIOS = sorted((LAYOUT.inventory / "scenarios").glob("*.yml"))


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: str(file.stem))
def test_preflights_room_is_that_of_the_largest_step(file: Path) -> None:
    loaded = load_scenario(file)
    for workload, need in zip(workloads_of(loaded), space_needs(loaded), strict=True):
        steps = workload.plan(loaded, Ground())
        assert steps and need.size_bytes == max(step.room_bytes for step in steps), workload.name
        assert all(step.times >= 0 and (step.bytes_written or 0) >= 0 for step in steps)


@pytest.mark.parametrize(("target", "scenario", "asks"), [(None, "snb-100s", True), (None, "read-scan", False)])
def test_more_than_a_drive_write_needs_a_word(target: str | None, scenario: str, asks: bool) -> None:
    plan = planned(scenario, target=target)
    assert bool(plan.consent) is asks
    if asks:
        assert "times the whole of drive SAMPLE1" in plan.consent


def test_more_than_40_gb_on_somebodys_file_system_needs_a_word() -> None:
    plan = plan_run(load_profiles(Request(scenario="snb-100s"), LAYOUT), LAYOUT)
    assert "to the file system of build/scratch, which this machine uses for other things" in plan.consent
    emulated = plan_run(load_profiles(Request("virtual", scenario="snb-100s"), LAYOUT), LAYOUT)
    assert emulated.consent == ""  # emulated drives wear nothing


def test_nobody_is_asked_where_nobody_can_answer() -> None:
    quiet = Console(file=io.StringIO())
    agree("", False, quiet)
    agree("This run writes 9 TB", True, quiet)
    with pytest.raises(RefusedError, match=r"This run writes 9 TB\. Nothing was written\. Agree with YES=1 \(--yes\)"):
        agree("This run writes 9 TB", False, quiet)


@pytest.mark.parametrize(
    ("answer", "goes_on"), [("y", True), ("yes", True), ("", False), ("n", False), ("yess", False)]
)
def test_on_a_terminal_it_is_asked(monkeypatch: pytest.MonkeyPatch, answer: str, goes_on: bool) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Console(file=Terminal(), force_terminal=True)
    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    if goes_on:
        agree("This run writes 9 TB", False, terminal)
    else:
        with pytest.raises(RefusedError, match="nobody agreed"):
            agree("This run writes 9 TB", False, terminal)


def test_a_night_that_wears_drives_begins_only_with_its_own_word(tmp_path: Path) -> None:
    yaml = YAML(typ="safe")
    document = yaml.load(SAMPLE)
    night = {"runs": [{"candidate": "sample", "scenario": "snb-100s"}]}
    document["all"]["vars"] = {"bench_nightly": night}
    file = tmp_path / "lab.yml"
    yaml.dump(document, file)
    with pytest.raises(RefusedError, match=r"No run was begun\. Write accept_wear: true beside `runs`"):
        load_plan(file)
    night.update(accept_wear=True)  # type: ignore[arg-type]
    yaml.dump(document, file)
    assert load_plan(file).accept_wear


def test_what_an_interrupted_endurance_run_spent_is_not_written_again() -> None:
    loaded = load_scenario(LAYOUT.inventory / "scenarios" / "endurance.yml")
    (workload,) = workloads_of(loaded)
    whole, rest = (written_by(workload.plan(loaded, Ground(spent_bytes=spent))) or 0 for spent in (0, 60 * TB))
    assert whole - rest == pytest.approx(60e12 / 1.02, rel=0.02)
    over = workload.plan(loaded, replace(Ground(), spent_bytes=200 * TB))
    assert over[-1].times == 0


@pytest.mark.integration  # it plans every scenario, which is seconds of parsing
def test_the_page_of_scenarios_has_the_table_that_the_command_makes() -> None:
    page = (LAYOUT.repository / "docs" / "scenarios.md").read_text(encoding="utf-8")
    stored = page.partition(BEGIN)[2].partition(END)[0].strip()
    assert stored == table(LAYOUT), "`.venv/bin/daq-bench plan --table docs/scenarios.md` renews it"


def test_a_file_system_that_leaves_too_little_is_told_by_the_plan_with_the_one_that_would_do(tmp_path: Path) -> None:
    def change(entry: dict[str, Any]) -> None:
        entry["targets"]["reference"]["storage"]["filesystem"] = "ext4"
        entry["identity"]["drives"][0]["capacity"] = "960GB"

    plan = planned("snb-100s", altered(tmp_path, change))
    told = [one for one in plan.reasons if "is too small" in one.reason]
    assert not plan.can_pass
    assert len(told) == 1 and "choose storage.filesystem: xfs, on which it fits" in told[0].remedy


def test_a_path_that_fio_would_misread_is_told_by_the_plan(tmp_path: Path) -> None:
    plan = planned(
        "snb-100s", altered(tmp_path, lambda entry: entry["targets"]["reference"].update(directory="/mnt/a;b"))
    )
    assert not plan.can_pass
    assert any("in its path" in one.reason and "has no ; #" in one.remedy for one in plan.reasons)


def test_the_rings_of_the_emulated_record_hold_all_of_it_so_that_a_slow_emulator_is_never_busy() -> None:
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "snb-emulated.yml")
    assert scenario.demand is not None
    (buffers,) = (one.memory(scenario).size_bytes for one in workloads_of(scenario) if one.name == "snb_record")
    assert buffers >= scenario.demand.offered_bytes_per_s * scenario.demand.duration_s


KINDS = {"filesystem": None, "raw-device": "raw"}  # of the sample candidate, by its target
FROM = [("this-machine", None), ("sample", None), ("sample", "raw")]


def words_of(reason: Reason) -> str:
    """What a reason begins with, without the file and the candidate that it is about."""
    return " ".join(re.sub(r"^\S+\.yml: ", "", reason.reason).split()[:6])


class Asked:
    """One request for a plan; each remedy changes it as a reader of the words would."""

    def __init__(self, folder: Path, candidate: str, target: str | None, scenario: str) -> None:
        self.folder, self.candidate, self.target, self.scenario = folder, candidate, target, scenario
        self.scale: float | None = None
        self.changes: list[Any] = []
        self.buffer, self.requirement = "", ""

    def plan(self) -> RunPlan:
        inventory = SAMPLE if self.candidate == "sample" else LAYOUT.inventory / "lab.yml"
        if self.buffer:
            inventory = altered(
                self.folder, lambda entry: entry.update(transient_buffer=self.buffer), inventory, self.candidate
            )
        asked = {"target": self.target, "scale": self.scale, "requirement": self.requirement or None}
        more = {key: value for key, value in asked.items() if value is not None}
        return planned(self._written(), inventory, self.candidate, **more)

    def _written(self) -> str:
        if not self.changes:
            return self.scenario
        yaml = YAML(typ="safe")
        file = LAYOUT.inventory / "scenarios" / f"{self.scenario}.yml"
        document = plain(read_scenario(file).data)
        for change in self.changes:
            change(document)
        yaml.dump(document, self.folder / f"{self.scenario}.yml")
        return str(self.folder / f"{self.scenario}.yml")

    def _with(self, **changes: Any) -> Asked:
        found = Asked(self.folder, self.candidate, self.target, self.scenario)
        vars(found).update({**vars(self), **changes})
        return found

    def remedied(self, remedy: str) -> list[Asked]:
        """The request after each of the changes that the remedy names."""
        if said := re.fullmatch(r"--scale ([\d.]+)", remedy):
            return [self._with(scale=float(said[1]))]
        if said := re.match(r"--scenario (.*), or correct these parameters", remedy):
            named = [] if said[1] == "one of your own" else said[1].split(" or ")
            return [self._corrected(), *(self._with(scenario=name, changes=[]) for name in named)]
        if remedy == "Choose a scenario that does without, or correct it in a copy":
            return [self._corrected()]
        if said := re.match(r"Ask for (\d+) repetitions(?: \((.+)\))? in a copy", remedy):
            return [self._with(changes=[*self.changes, partial(_repeated, int(said[1]), said[2] or "repetitions")])]
        if said := re.fullmatch(r"Give a requirement of (\S+) severity: mandatory", remedy):
            text = (LAYOUT.inventory / "requirements" / said[1]).read_text(encoding="utf-8")
            (self.folder / said[1]).write_text(text.replace("advisory", "mandatory", 1), encoding="utf-8")
            return [self._with(requirement=str(self.folder / said[1]))]
        if said := re.match(
            r"Set drives aside, and describe them as a target of kind ([a-z -]+) \(docs/own-hardware.md\)", remedy
        ):
            kinds = [one for one in said[1].split(" or ") if one in KINDS]
            return [self._with(candidate="sample", target=KINDS[one], buffer="") for one in kinds]
        if said := re.match(r"Choose a (?:target of kind )?(filesystem|raw-device)", remedy):
            return [self._with(candidate="sample", target=KINDS[said[1]], buffer="")]
        if remedy == "Make them smaller, or declare more in inventory/lab.yml":
            return [self._with(buffer="64GB")]
        if remedy.startswith("Declare its port and peers (docs/network.md)"):
            return [self._with(candidate="sample", target=None, buffer="")]
        if remedy.startswith(("A higher write_budget allows more wear", "Raise the budget")):
            return [self._with(changes=[*self.changes, _budgeted])]
        if remedy == "Remove hazards, or choose a scenario without":
            return [self._with(changes=[*self.changes, _unharmed])]
        raise AssertionError(f"nobody knows how to follow this: {remedy}")

    def _corrected(self) -> Asked:
        """A copy of the scenario that asks for what its requirement profile demands."""
        profile = plain(read_scenario(LAYOUT.inventory / "scenarios" / f"{self.scenario}.yml").data)
        name = profile.get("requirement", DEFAULT_PROFILE)
        demanded = YAML(typ="safe").load(LAYOUT.inventory / "requirements" / f"{name}.yml")["conditions"]["load"]
        return self._with(changes=[*self.changes, partial(_asking_for, demanded)])


def _asking_for(demanded: dict[str, Any], document: Any) -> None:
    own = document.pop("workloads")
    top = {key: value for key, value in demanded.items() if key not in WORKLOADS}
    document.update(_merged(document, top), workloads=own)
    for name in own.keys() & demanded.keys():
        own[name] = _merged(own[name], demanded[name])


def _merged(own: Any, demanded: Any) -> Any:
    if not isinstance(demanded, dict):
        return "10.0.0.2" if demanded == "given" else demanded
    found = dict(own or {})
    for key, value in demanded.items():
        if value == "left-out":
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _repeated(times: int, field: str, document: Any) -> None:
    *path, last = field.split(".")
    for key in path:
        document = document.setdefault(key, {"seconds_per_repetition": 90} if key == "confirm" else {})
    document[last] = times


def _budgeted(document: Any) -> None:
    for own in document["workloads"].values():
        own["write_budget"] = "1000TB"


def _unharmed(document: Any) -> None:
    del document["workloads"]["thermal"]["hazards"]


@pytest.fixture(scope="module")
def followed() -> set[tuple[str, str]]:
    """Reasons and remedies that a test has tried: most stand in many plans."""
    return set()


@pytest.mark.integration  # it makes hundreds of plans
@pytest.mark.parametrize("scenario", sorted({*SHIPPED, "raid-vs-3dxp", "raid-vs-3dxp-emulated"}))
@pytest.mark.parametrize(("candidate", "target"), FROM, ids=["this-machine", "file system", "raw"])
def test_each_remedy_that_the_plan_names_removes_its_reason_and_together_they_lead_to_a_pass(
    tmp_path: Path, candidate: str, target: str | None, scenario: str, followed: set[tuple[str, str]]
) -> None:
    asked = Asked(tmp_path, candidate, target, scenario)
    try:
        plan = asked.plan()
    except ProfileError as error:
        assert scenario.startswith("raid"), error  # it names targets that this machine has not got
        return
    for _ in range(8):
        if plan.can_pass:
            return
        for reason in plan.reasons:
            if (words_of(reason), reason.remedy) in followed:
                continue
            followed.add((words_of(reason), reason.remedy))
            for other in asked.remedied(reason.remedy):
                assert words_of(reason) not in map(words_of, other.plan().reasons), reason
        asked = asked.remedied(plan.reasons[0].remedy)[0]
        plan = asked.plan()
    raise AssertionError("\n".join(plan.lines()))
