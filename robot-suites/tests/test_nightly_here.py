"""Real nights on this machine's smoke: one candidate that is well and one that cannot pass, a regression by a slower disk, a stop."""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from test_qualify import settings_now, wait_for_phase

from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.influx_server import LocalInflux

pytestmark = [pytest.mark.integration, pytest.mark.campaign, pytest.mark.usefixtures("own_lock")]

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
SLOW_BYTES_PER_S = 100_000_000  # the record asks for 460 MB/s
TEST_PORT = 18386
NIGHT_S_MAX = 3600.0  # two runs take five minutes on an idle machine
BLKIO = Path("/sys/fs/cgroup/blkio")


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An InfluxDB of these tests: one that a night started would stay in its control group."""
    made = LocalInflux(LAYOUT.influxd, tmp_path_factory.mktemp("influxdb-nights"))
    yield made.start(TEST_PORT)
    made.stop()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with an inventory of two candidates, both this machine: `sound`, and `wanting`, which must do the impossible."""
    folder, disk = tmp_path_factory.mktemp("nights"), LAYOUT.build / "tests" / "nights"
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "dune-snb.yml").document
    scenario |= {"id": "short", "scale": 0.05, "duration_s": 3}
    scenario["workloads"]["block_scan"].update(
        block_sizes=["1MiB", "8MiB"], seconds_per_point=1, ramp_s=0.25, file_size="256MiB"
    )
    modest = YAML_SAFE.load(LAYOUT.inventory / "requirements" / "dune-snb.yml")
    kept = ("snb_record.transient_buffer_needed", "snb_record.lost_superchunks", "snb_record.verified_fraction")
    modest |= {"id": "modest", "requirements": [one for one in modest["requirements"] if one["metric"] in kept]}
    impossible = copy.deepcopy(modest) | {"id": "impossible"}
    for one in impossible["requirements"]:
        if one["metric"] == kept[0]:
            one["bound"] = 1e-9  # GB: no record does without a buffer
    for document in (scenario, modest, impossible):
        YAML_SAFE.dump(document, folder / f"{document['id']}.yml")
    host = YAML_SAFE.load(LAYOUT.inventory / "lab.yml")["all"]["children"]["candidates"]["hosts"]["this-machine"]
    host["bench_candidate"]["target"]["directory"] = str(disk)
    hosts = {"wanting": host, "sound": copy.deepcopy(host)}
    runs = [
        {"candidate": "wanting", "scenario": str(folder / "short.yml"), "requirement": str(folder / "impossible.yml")},
        {"candidate": "sound", "scenario": str(folder / "short.yml"), "requirement": str(folder / "modest.yml")},
    ]
    inventory = {"all": {"vars": {"bench_nightly": {"runs": runs}}, "children": {"candidates": {"hosts": hosts}}}}
    YAML_SAFE.dump(inventory, folder / "lab.yml")
    yield folder
    with suppress(FileNotFoundError):
        shutil.rmtree(disk)


def command(lab: Path, *more: str) -> list[str]:
    own = ["--inventory", str(lab / "lab.yml"), "--runs", str(lab / "runs"), "--output", str(lab / "nightly")]
    return [
        sys.executable,
        "-m",
        "daq_bench.rig",
        "nightly",
        *own,
        "--influx-url",
        f"http://127.0.0.1:{TEST_PORT}",
        *more,
    ]


def night(lab: Path, status: int, *more: str) -> dict[str, Any]:
    done = subprocess.run(command(lab, *more), capture_output=True, text=True, timeout=NIGHT_S_MAX, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((lab / "nightly" / "latest" / "nightly.json").read_text(encoding="utf-8"))
    assert found["exit_status"] == status
    return found


@pytest.fixture(scope="module")
def first(lab: Path) -> dict[str, Any]:
    return night(lab, 1)


def test_the_failing_candidate_comes_first_and_the_sound_one_is_run_all_the_same(first: dict[str, Any]) -> None:
    assert [(run["job"]["candidate"], run["outcome"]) for run in first["runs"]] == [
        ("wanting", "FAIL"),
        ("sound", "rehearsal"),
    ]


def test_its_documents_agree(lab: Path, first: dict[str, Any]) -> None:
    folder = (lab / "nightly" / "latest").resolve()
    suites = {suite.get("name"): suite for suite in ElementTree.parse(folder / "xunit.xml").getroot()}
    assert (suites["wanting.short"].get("failures"), suites["sound.short"].get("failures")) == ("1", "0")
    assert (
        (folder / "summary.txt")
        .read_text(encoding="utf-8")
        .startswith("FAIL: 2 runs on 2 candidates (1 FAIL, 1 REHEARSAL)")
    )
    for run in first["runs"]:
        lines = (folder / "ocp" / f"{run['run_id']}.jsonl").read_text(encoding="utf-8").splitlines()
        ended = json.loads(lines[-1])["testRunArtifact"]["testRunEnd"]
        assert ended == {"status": "COMPLETE", "result": "FAIL" if run["outcome"] == "FAIL" else "NOT_APPLICABLE"}
    assert "wanting" in (folder / "nightly.html").read_text(encoding="utf-8")
    assert (folder / "trend" / "sound-short" / "trend.pdf").exists()


@pytest.fixture
def slow_disk() -> Iterator[Path]:
    """A control group of ours in which the kernel lets a process write 100 MB/s to this disk."""
    if not BLKIO.is_dir():
        pytest.skip("no blkio control group on this machine: the disk cannot be made slower")
    group = BLKIO / f"daq-bench-night-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here ({error.strerror}): the disk cannot be made slower")
    device = LAYOUT.build.stat().st_dev
    (group / "blkio.throttle.write_bps_device").write_text(
        f"{os.major(device)}:{os.minor(device)} {SLOW_BYTES_PER_S}", encoding="ascii"
    )
    yield group
    group.rmdir()


def test_a_slower_disk_is_a_regression_against_the_baseline(lab: Path, first: dict[str, Any], slow_disk: Path) -> None:
    good = first["runs"][1]["run"]
    chosen = [sys.executable, "-m", "daq_bench.rig", "baseline", good, "--output", str(lab / "nightly")]
    assert subprocess.run(chosen, capture_output=True, text=True, timeout=120, check=False).returncode == 0
    into_group = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(slow_disk / "cgroup.procs")]
    done = subprocess.run(
        [*into_group, *command(lab, "--candidates", "sound")],
        capture_output=True,
        text=True,
        timeout=NIGHT_S_MAX,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    (run,) = json.loads((lab / "nightly" / "latest" / "nightly.json").read_text(encoding="utf-8"))["runs"]
    assert run["baseline"] == Path(good).name
    results = {one["id"]: one["result"] for one in run["comparisons"]}
    assert results["SNB-01"] == "regressed"  # superchunks were lost
    assert run["outcome"] == "FAIL"


def test_a_stopped_night_gives_the_machine_back_and_can_be_resumed(lab: Path) -> None:
    before = settings_now()
    runs = lab / "stopped"
    argv = command(lab, "--candidates", "sound")
    argv[argv.index(str(lab / "runs"))] = str(runs)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        bundle = wait_for_phase(process, runs, "block_scan", timeout_s=NIGHT_S_MAX)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=NIGHT_S_MAX)
    assert process.returncode == 130, output + errors
    assert settings_now() == before
    assert json.loads((bundle / "run.json").read_text(encoding="utf-8"))["state"] == "interrupted"
    assert (bundle / "MANIFEST.sha256").exists()
    folder = (lab / "nightly" / "latest").resolve()
    stopped = json.loads((folder / "nightly.json").read_text(encoding="utf-8"))
    assert (stopped["state"], stopped["runs"][0]["outcome"]) == ("interrupted", "interrupted")
    resumed = night(lab, 0, "--resume", str(folder))
    assert (resumed["state"], resumed["runs"][0]["outcome"]) == ("finished", "rehearsal")
