"""Several real candidates at the same time: containers with a network, a drive and a setting of their own, and real runs on each."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from daq_bench.crash_trials import judge
from daq_bench.crash_trials.campaign import forget
from daq_bench.crash_trials.candidate import LightCandidate, light_candidates, missing
from daq_bench.crash_trials.processes import inside
from daq_bench.crash_trials.trial import REQUIREMENT, SCENARIO, document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.influx_server import LocalInflux

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(bool(missing()), reason=missing() or "light candidates can be made"),
]
PORT, MANY, RECORD_S = 18760, 8, 4.0
Lab = tuple[Path, list[LightCandidate], str]


@contextmanager
def laboratory(count: int) -> Iterator[Lab]:
    """A folder with an inventory of candidates that are up, and the URL of an InfluxDB."""
    folder = Layout().build / "tests" / f"fleet-{os.getpid()}-{count}"
    folder.mkdir(parents=True)
    influx = LocalInflux(Layout().influxd, folder / "influxdb")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        stack.callback(influx.stop)
        made = stack.enter_context(light_candidates(folder, count))
        for one in made:
            stack.callback(forget, one)
        yield folder, made, influx.start(PORT)


@pytest.fixture(scope="module")
def eight() -> Iterator[Lab]:
    with laboratory(MANY) as lab:
        write_lab(lab[0], lab[1])
        yield lab


def write_lab(folder: Path, made: Sequence[LightCandidate], **of_the_last: object) -> None:
    hosts = {one.name: one.entry(**(of_the_last if one is made[-1] else {})) for one in made}
    YAML(typ="safe").dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, folder / "lab.yml")


def rig(folder: Path, *words: str, terminal: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    argv = [
        sys.executable,
        "-m",
        "daq_bench.rig",
        *words,
        "--inventory",
        str(folder / "lab.yml"),
        "--runs",
        str(folder / "runs"),
    ]
    environment = {
        **os.environ, "DAQ_BENCH_LOCK_DIR": str(folder), "TERM": "xterm", "COLUMNS": "240", "LINES": "50",
    }  # fmt: skip
    return subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=terminal, text=True, timeout=1500, check=False, env=environment
    )


def qualified(
    lab: Lab, *more: str, who: Sequence[str] = (), terminal: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    folder, made, url = lab
    names = who or ("--candidates", ",".join(one.name for one in made), "--jobs", str(len(made)))
    profiles = ("--scenario", str(SCENARIO), "--requirement", str(REQUIREMENT))
    return rig(folder, "qualify", "--yes", *names, *profiles, "--influx-url", url, *more, terminal=terminal)


@contextmanager
def watched(step: Callable[[], bool]) -> Iterator[None]:
    """Asks `step` again and again beside the block, until it is true or the block has ended; an error in it is the test's."""
    over, raised = threading.Event(), list[BaseException]()

    def watch() -> None:
        try:
            while not step() and not over.wait(0.1):
                pass
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert raised == []


@contextmanager
def terminal() -> Iterator[tuple[int, list[str]]]:
    """A terminal to write to, and what was written when the block has ended."""
    ours, theirs = pty.openpty()
    parts, shown = list[bytes](), list[str]()

    def read() -> None:
        with suppress(OSError):  # the kernel's word for an end that was closed
            while part := os.read(ours, 65536):
                parts.append(part)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield theirs, shown
    finally:
        os.close(theirs)
        thread.join()
        os.close(ours)
        shown.append(b"".join(parts).decode("utf-8", "replace"))


def outcomes(done: subprocess.CompletedProcess[str], made: Sequence[LightCandidate]) -> list[str]:
    """The word for each candidate, in the order in which they were asked for."""
    said = [
        [line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith(f"{one.name} / ")] for one in made
    ]
    assert [len(each) for each in said] == [1] * len(made), f"{done.stdout}{done.stderr}"
    return [each[0] for each in said]


def bundles(folder: Path, one: LightCandidate) -> list[Path]:
    return sorted((folder / "runs").glob(f"*-{one.name}-*"))


def newest(folder: Path, one: LightCandidate) -> Path | None:
    return max(bundles(folder, one), default=None)


def in_its_burst(folder: Path, one: LightCandidate) -> bool:
    """Says whether it records, once it knows the other candidates."""
    told = document(newest(folder, one), "facts/together.json")
    return bool(told) and any(" minidaq " in words for words in inside(one.container.pid).values())


def require_skew(done: subprocess.CompletedProcess[str], burst: int, who: Sequence[LightCandidate]) -> None:
    """These recorded at the same time, by their own records: the last began before the first had ended."""
    names = ", ".join(sorted(one.name for one in who))
    said = re.search(rf"burst {burst}: {names} began within ([\d.]+) s \(known to ([\d.]+) s", done.stdout)
    assert said is not None, done.stdout
    print(f"burst {burst} of {len(who)}: skew {1e3 * float(said[1]):.0f} ms, known to {1e3 * float(said[2]):.0f} ms")
    assert float(said[1]) + float(said[2]) < RECORD_S


def test_a_wrong_machine_is_refused_beside_a_sound_one() -> None:
    wrong = {"architectures": ["x86_64", "aarch64"], "cpus_min": 4096, "memory_min": "1GiB"}
    with laboratory(2) as lab:
        folder, made, _ = lab
        write_lab(folder, made, identity=wrong)
        done = qualified(lab)
        assert outcomes(done, made) == ["PASS", "ERROR"], done.stdout + done.stderr
        assert done.returncode == 2
        assert "is not the candidate" in done.stdout
        assert bundles(folder, made[1]) == []
        assert [judge.is_as_before(one) for one in made] == [[], []]


# In the two tests below one machine carries all eight, so that a run may be inadmissible for a source that was too slow.


@pytest.mark.campaign
def test_eight_begin_their_bursts_together_and_nobody_else_gets_one_of_them(eight: Lab) -> None:
    folder, made, _ = eight
    refused: list[subprocess.CompletedProcess[str]] = []

    def ask_for_the_first() -> bool:
        if in_its_burst(folder, made[0]):
            refused.append(qualified(eight, who=("--candidate", made[0].name)))
        return bool(refused)

    with terminal() as (theirs, shown), watched(ask_for_the_first):
        done = qualified(eight, "--together", terminal=theirs)
    said = outcomes(done, made)
    print(said)
    assert set(said) <= {"PASS", "INADMISSIBLE"} and "PASS" in said, done.stdout
    assert done.returncode == (0 if set(said) == {"PASS"} else 3)
    require_skew(done, 1, made)
    require_skew(done, 2, made)
    assert [len(bundles(folder, one)) for one in made] == [1] * MANY
    assert [judge.is_as_before(one) for one in made] == [[]] * MANY
    assert refused[0].returncode == 2 and "is being qualified by" in refused[0].stderr
    for one, outcome in zip(made, said, strict=True):
        assert re.search(rf"{one.name} / \S+\s+running\s+\d+ s", shown[0])
        assert re.search(rf"{one.name} / \S+\s+{outcome}", shown[0])


@pytest.mark.campaign
def test_the_network_of_one_of_eight_is_cut_in_its_burst(eight: Lab) -> None:
    """Only the one breaks; the others' bursts began together, and the command says that one is missing."""
    folder, made, _ = eight
    *others, victim = made
    before = [bundles(folder, one) for one in made]

    def cut() -> bool:
        ready = bundles(folder, victim) != before[-1] and in_its_burst(folder, victim)
        if ready:
            victim.cut(off=True)
        return ready

    try:
        with watched(cut):
            done = qualified(eight, "--together")
    finally:
        victim.cut(off=False)
    said = outcomes(done, made)
    print(said, done.stdout)
    assert said[-1] == "ERROR"
    assert set(said[:-1]) <= {"PASS", "INADMISSIBLE"} and "PASS" in said
    assert done.returncode == 2
    require_skew(done, 1, others)
    assert re.search(rf"without {victim.name}: ", done.stdout)
    for one, known in zip(others, before, strict=False):
        (bundle,) = set(bundles(folder, one)) - set(known)
        assert document(bundle, "run.json")["candidate"]["name"] == one.name
        assert judge.is_as_before(one) == []
    restored = rig(folder, "restore", "--candidate", victim.name)
    assert restored.returncode == 0, restored.stderr
    assert judge.is_as_before(victim) == []
