"""Suites of one's own on this machine: the examples, of which one is the page's, wrong uses, and runs that are killed or stopped."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from whole_runs import check_bundle, document, rig

from daq_bench import Bundle
from daq_bench.bench_model.evidence.admissibility import OWN_SUITE_SAYS
from daq_bench.rig.base.settings import Layout
from daq_bench.virtual_candidate.ports import free_ports

pytestmark = pytest.mark.integration
ROBOT = Path(sys.executable).with_name("robot")
EXAMPLES = Layout().repository / "robot-suites" / "examples"
PAGE = Layout().repository / "docs" / "own-suites.md"
WAIT_S = 600.0  # for what comes in seconds on an idle machine


@dataclass
class Place:
    """Folders of the tests' own, so that no run of the user's waits or is waited for."""

    folder: Path
    disk: Path
    locks: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def suite(self, text: str, name: str = "my.robot") -> Path:
        """The suite with the places of these tests in `Provision Candidate`, which is otherwise unchanged."""
        more = f"Provision Candidate    runs={self.runs}    directory={self.disk}"
        file = self.folder / "suites" / name
        file.parent.mkdir(exist_ok=True)
        assert "Provision Candidate" in text
        file.write_text(text.replace("Provision Candidate", more, 1), encoding="utf-8")
        return file

    def start(self, suites: Path) -> subprocess.Popen[str]:
        no_influx = f"http://127.0.0.1:{free_ports(1)[0]}"
        environment = {**os.environ, "DAQ_BENCH_LOCK_DIR": str(self.locks), "INFLUX_URL": no_influx}
        environment.pop("PYTHONPATH", None)
        argv = [str(ROBOT), "--outputdir", str(self.folder / "out"), str(suites)]
        return subprocess.Popen(
            argv, env=environment, cwd=Layout().repository, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, suites: Path) -> tuple[int, str]:
        process = self.start(suites)
        said, _ = process.communicate(timeout=3 * WAIT_S)
        return process.returncode, said

    def bundles(self) -> list[Path]:
        return sorted(one for one in self.runs.iterdir() if not one.is_symlink())

    def is_free(self) -> bool:
        """Says whether nobody holds a lock and nothing is left on the target."""
        for file in self.locks.iterdir():
            with file.open() as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        return list(self.disk.iterdir()) == []


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Place]]:
    made: list[Place] = []

    def place(name: str) -> Place:
        disk = Layout().build / "tests" / f"own-suites-{name}"
        disk.mkdir(parents=True, exist_ok=True)
        made.append(Place(tmp_path_factory.mktemp(name), disk, tmp_path_factory.mktemp("locks")))
        return made[-1]

    yield place
    for one in made:
        shutil.rmtree(one.disk)


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"waited {WAIT_S:g} s in vain: {what}"
        time.sleep(0.1)


def statuses(place: Place) -> dict[str, str]:
    root = ElementTree.parse(place.folder / "out" / "output.xml").getroot()
    return {str(one.get("name")): str(one.find("status").get("status")) for one in root.iter("test")}  # type: ignore[union-attr]


def agents_of(run: str) -> list[str]:
    """The processes whose command line names the run."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = one.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        if run in words:
            found.append(words)
    return found


def test_the_examples_run_each_in_a_bundle_of_its_own(places: Callable[[str], Place]) -> None:
    place = places("examples")
    for file in EXAMPLES.glob("*.robot"):
        place.suite(file.read_text(encoding="utf-8"), file.name)
    shutil.copy(EXAMPLES / "scan-cost.yml", place.folder / "suites")
    status, said = place.run(place.folder / "suites")
    assert status == 0, said
    found = statuses(place)
    warm = found.pop("The Drive Stays Cool While It Is Written")
    assert found == {
        "A Short Burst Is Stored And Read Back Whole": "PASS",
        "The Rate By Block Size Is Known And Costs Little": "PASS",
        "What Was Written Reads Back Without A Gap In The Telemetry": "PASS",
    }
    measured = []
    for path in place.bundles():
        bundle = Bundle(path)
        ours = EXAMPLES / f"{bundle.run.requirement.id}.yml"
        checked = rig("check-bundle", str(path), *(["--requirement", str(ours)] if ours.exists() else []))
        assert checked.returncode == 0 and "scenario   OWN SUITE, whose author" in checked.stdout, checked.stdout
        assert bundle.run.own_suite and bundle.run.state == "finished", bundle.run.state_reason
        assert bundle.conclusion == f"INADMISSIBLE: {OWN_SUITE_SAYS}"
        assert bundle.standing == "sealed"
        assert f"DaqBench: INADMISSIBLE: {OWN_SUITE_SAYS} ({path})" in said
        measured.append(bundle.run.scenario.workloads)
        (suite,) = ElementTree.parse(path / "robot" / "output.xml").getroot().findall("suite")
        assert [one for one in suite.iter("kw") if one.get("owner") == "DaqBench"], (
            "the keywords are in the bundle, too"
        )
        assert (path / "robot" / "log.html").is_file() and (path / "robot" / "xunit.xml").is_file()
        assert {"test", "verdict"} <= {one.kind for one in bundle.events}
        if "saturation" in measured[-1]:
            readings = document(path, "results/drive_temperature.json")["hottest_sensor"]
            assert warm == ("SKIP" if readings is None else "PASS" if readings["degC"] < 70 else "FAIL")
    assert sorted(measured) == [("block_scan",), ("saturation", "read_scan"), ("snb_record",)]
    assert place.is_free()


def test_the_page_leads_to_the_suite_that_was_run() -> None:
    """The suite of docs/own-suites.md is the example `burst.robot`, which the test above runs, without what a beginner need not know."""
    text = PAGE.read_text(encoding="utf-8")
    (suite,) = re.findall(r"```robotframework\n(.*?)```", text, re.DOTALL)
    assert "\n    .venv/bin/robot my.robot\n" in text
    example = (EXAMPLES / "burst.robot").read_text(encoding="utf-8")
    lines = [line for line in example.splitlines() if line and not line.startswith("Documentation")]
    assert [line for line in suite.splitlines() if line] == lines


def test_wrong_uses_have_one_clear_error_each_and_the_candidate_comes_back(places: Callable[[str], Place]) -> None:
    place = places("wrong")
    suite = place.suite("""\
*** Settings ***
Library           DaqBench
Library           OperatingSystem
Suite Teardown    Fail    the teardown fails, and calls no Restore Candidate

*** Test Cases ***
There Is No Such Candidate
    Run Keyword And Expect Error    *no-such-server*    PROVISION    candidate=no-such-server

The Order Is Wrong
    ${bundle}=    Provision Candidate
    Set Suite Variable    ${bundle}
    Run Keyword And Expect Error    nothing was written that could be read back. Call Record Burst or Write first    Read Back
    Run Keyword And Expect Error    *provisioned already*    PROVISION
    Run Keyword And Expect Error    nothing was recorded yet. Call Record Burst first    No Superchunk Should Be Lost

The Unit Is Wrong
    Run Keyword And Expect Error    *has unit 'k'; use one of*    Write    4k
    Run Keyword And Expect Error    *no multiple of 4 KiB*    Write    4 MiB    block_size=1000 B
    Run Keyword And Expect Error    *This run writes 55.* GB*yes=True*    Scan Block Sizes    4 KiB    8 MiB    seconds_per_point=3 s

A Load Is Measured Once
    Write    16 MiB
    Run Keyword And Expect Error    *measured saturation already*    Write    16 MiB
    Run Keyword And Expect Error    *profile has no 'SNB-99'*    Requirement Should Be Met    SNB-99

A Suite Cannot Say How Its Run Ends
    Create File    ${bundle}/verdict.json    {"outcome": "PASS", "reasons": ["trust me"]}
    ${run}=    Get File    ${bundle}/run.json
    ${run}=    Evaluate    $run.replace("own-suite", "snb-100s")
    Create File    ${bundle}/run.json    ${run}
""")
    suite.write_text(suite.read_text(encoding="utf-8").replace("PROVISION", "Provision Candidate"), encoding="utf-8")
    status, said = place.run(suite)
    assert status == 5, said  # the teardown's failure is each test's
    assert "the teardown fails" in said, said
    assert set(statuses(place).values()) == {"PASS"}, said  # by themselves
    (bundle,) = place.bundles()
    assert document(bundle, "run.json")["state"] == "finished"
    assert list(document(bundle, "run.json")["scenario"]["parameters"]["workloads"]) == ["saturation"]
    assert document(bundle, "verdict.json")["outcome"] == "INADMISSIBLE"
    assert Bundle(bundle).run.own_suite
    check_bundle(bundle)
    assert place.is_free()


LONG = """\
*** Settings ***
Library           DaqBench
Suite Setup       Provision Candidate    scale=0.002
Suite Teardown    Restore Candidate

*** Test Cases ***
A Long Burst
    Record Burst    10 min
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped"])
def test_a_suite_that_ends_in_mid_load_leaves_nothing_behind(
    places: Callable[[str], Place], number: signal.Signals
) -> None:
    place = places(number.name.lower())
    suite = place.suite(LONG)
    process = place.start(suite)
    until(lambda: any(place.disk.rglob("*.daq")) or process.poll() is not None, "the record begins")
    assert process.poll() is None, process.stdout and process.stdout.read()
    (bundle,) = place.bundles()
    assert agents_of(bundle.name) and not place.is_free()
    status, said = second(place, suite)
    assert status == 1 and "is being qualified by process" in " ".join(said.split()), said
    process.send_signal(number)
    process.communicate(timeout=WAIT_S)
    until(lambda: place.is_free() and not agents_of(bundle.name), "everything is given back")
    run = document(bundle, "run.json")
    assert (run["state"], run["finished_utc"] is not None) == ("interrupted", True)
    assert document(bundle, "verdict.json")["outcome"] == "ERROR"
    # Another test that was killed may have left its candidate's state in this checkout.
    assert not [file for file in Layout().to_put_back() if file.parent.name == "this-machine"]


def second(place: Place, suite: Path) -> tuple[int, str]:
    """The same suite once more, at the same time."""
    other = Place(place.folder / "second", place.disk, place.locks)
    other.folder.mkdir()
    return other.run(suite)
