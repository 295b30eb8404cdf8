"""The main job as a user runs it, short, on this machine's real parts: Ansible, fio, daqwriter, InfluxDB, the report."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import wait_for
from dashboard_trials import all_tried, unexcused
from pypdf import PdfReader
from ruamel.yaml import YAML
from whole_runs import document

from daq_bench.bench_dashboards.interpolation import Choice
from daq_bench.bench_dashboards.trial import Server
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import survey
from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.bench_model.bundle.provenance import NO_EVIDENCE
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.checking.check_bundle import check_seals
from daq_bench.rig.telemetry.history import undelivered
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.virtual_candidate.ports import free_ports

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("own_lock")]

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
TEST_PORT = 18286


PROFILE_FILES = {"scenario": "short.yml", "requirement": "short-requirement.yml"}


def write_profiles(folder: Path, block_scan: bool) -> tuple[Path, Path]:
    """A user's own scenario and requirement: the shipped ones, shortened; without the scan where it adds nothing."""
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "dune-snb.yml").document
    scenario["id"] = "short"
    scan = scenario["workloads"]["block_scan"]
    scan.update(block_sizes=["64KiB", "1MiB", "8MiB"], seconds_per_point=1, ramp_s=0.25, file_size="256MiB")
    requirement = YAML_SAFE.load(LAYOUT.inventory / "requirements" / "dune-snb.yml")
    requirement["id"] = "short-requirement"
    if not block_scan:
        del scenario["workloads"]["block_scan"]
        kept = [entry for entry in requirement["requirements"] if not entry["metric"].startswith("block_scan.")]
        requirement["requirements"] = kept
    files = folder / PROFILE_FILES["scenario"], folder / PROFILE_FILES["requirement"]
    YAML_SAFE.dump(scenario, files[0])
    YAML_SAFE.dump(requirement, files[1])
    return files


def command(folder: Path, disk: Path, influx_url: str, *more: str, block_scan: bool = False) -> list[str]:
    scenario, requirement = write_profiles(folder, block_scan)
    return [
        *(
            sys.executable,
            "-m",
            "daq_bench.rig",
            "qualify",
            "--scenario",
            str(scenario),
            "--requirement",
            str(requirement),
        ),
        *("--runs", str(folder / "runs"), "--target", str(disk), "--influx-url", influx_url, *more),
    ]


def newest(folder: Path) -> Path:
    return (folder / "runs" / "latest").resolve()


def rows(url: str, query: str) -> list[list[Any]]:
    return [row for one in Influx(url).query(query) for row in one["values"]]


def settings_now() -> tuple[str, ...]:
    """Returns the settings that provisioning changes on this machine, where the kernel has them."""
    files = [Path("/proc/sys/fs/aio-max-nr"), *sorted(Path("/sys/block").glob("*/queue/scheduler"))]
    return tuple(file.read_text(encoding="ascii") for file in files)


def wait_for_phase(process: subprocess.Popen[str], runs: Path, source: str, timeout_s: float = 120.0) -> Path:
    """Waits until the run in `runs` has announced the phase; returns its bundle."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        events = runs / "latest" / "events.jsonl"
        if events.exists() and any(
            json.loads(line)["source"] == source for line in events.read_text(encoding="utf-8").splitlines()
        ):
            return (runs / "latest").resolve()
        time.sleep(0.1)
    raise AssertionError(f"phase {source} did not begin within {timeout_s} s")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalInflux]:
    made = LocalInflux(LAYOUT.influxd, tmp_path_factory.mktemp("influxdb-qualify"))
    made.start(TEST_PORT)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def finished(server: LocalInflux, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """One whole short run: (bundle, InfluxDB's URL, what the command printed)."""
    folder = tmp_path_factory.mktemp("qualify")
    disk = LAYOUT.build / "tests" / "qualify"
    url = server.running_url()
    assert url is not None
    before = settings_now()
    argv = command(folder, disk, url, "--scale", "0.05", "--duration", "3", block_scan=True)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert settings_now() == before, "the run changed the machine"
    assert list(disk.iterdir()) == [], "scratch files were left behind"
    yield newest(folder), url, done.stdout
    shutil.rmtree(disk)


def test_the_outcome_is_a_declared_rehearsal_with_its_reasons(finished: tuple[Path, str, str]) -> None:
    bundle, _, said = finished
    verdict = document(bundle / "verdict.json")
    assert (verdict["outcome"], verdict["declared_rehearsal"]) == ("INADMISSIBLE", True)
    for reason in (
        "The load is 0.05 of one readout unit",
        "The scenario asks for less than the requirement profile demands: duration_s is 3.0 where at least 100 is demanded",
        "The target is a scratch file",
    ):
        assert any(text.startswith(reason) for text in verdict["reasons"]), reason
        assert reason in said
    assert "Outcome: REHEARSAL (INADMISSIBLE in verdict.json)" in said
    assert "report.pdf" in said


def test_every_superchunk_was_recorded_and_read_back(finished: tuple[Path, str, str]) -> None:
    repetition = document(finished[0] / "results" / "snb_record.json")["repetitions"][0]
    counts = repetition["minidaq"]["superchunks"]
    assert counts["intended"] == 10 * 166_000 * 0.05 * 3
    assert repetition["minidaq"]["bytes"]["payload"] == counts["stored"] * 5568
    assert counts["stored"] + counts["lost"] == counts["offered"]
    assert repetition["verify"]["superchunks"]["present"] == counts["stored"]
    assert repetition["verify"]["status"] == "intact"


def test_the_bundle_is_whole_sealed_and_gives_the_same_verdict_again(finished: tuple[Path, str, str]) -> None:
    bundle = finished[0]
    names = ["run.json", "events.jsonl", "verdict.json", "report.pdf", "report.html", "MANIFEST.sha256"]
    names += ["REPORTS.sha256", "report-data.json"]
    names += ["facts/tuning.json", "facts/tuning-after.json", "facts/smart-before.json", "facts/smart-after.json"]
    names += ["results/identity.json", "results/block_scan.json", "results/snb_record.json", "telemetry/points.lp"]
    names += [
        "telemetry/workload.lp",
        "telemetry/summary.json",
        "robot/output.xml",
        "robot/log.html",
        "robot/xunit.xml",
    ]
    assert [name for name in names if not (bundle / name).is_file()] == []
    assert not (bundle / "error.txt").exists()
    own = [f"--{kind}={bundle.parents[1] / name}" for kind, name in PROFILE_FILES.items()]
    checked = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "check-bundle", str(bundle), *own],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    moved = bundle.parent / "moved"
    shutil.copytree(bundle, moved)
    (moved / "results" / "snb_record.json").write_text("{}", encoding="utf-8")
    altered = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "check-bundle", str(moved)], capture_output=True, text=True, check=False
    )
    assert altered.returncode == 1
    assert "results/snb_record.json: altered since it was sealed" in altered.stderr
    shutil.rmtree(moved)


def test_every_number_of_the_report_is_recomputed_and_nobody_vouches(finished: tuple[Path, str, str]) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "check-bundle", str(finished[0])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"numbers +recomputed: \d{3,} texts and numbers, \d{3,} plotted values", checked.stdout), (
        checked.stdout
    )
    assert checked.stdout.count("unsigned: nobody vouches for it") == 2
    pages = [page.extract_text() for page in PdfReader(finished[0] / "report.pdf").pages]
    digest = hashlib.sha256((finished[0] / "MANIFEST.sha256").read_bytes()).hexdigest()
    assert [digest in page for page in pages] == [True] * len(pages)


def test_one_flipped_bit_in_any_file_of_a_real_bundle_is_noticed(finished: tuple[Path, str, str]) -> None:
    moved = finished[0].parent / "flipped"
    shutil.copytree(finished[0], moved)
    unnoticed, tried = [], 0
    for name in survey(moved).files:
        content = (moved / name).read_bytes()
        if not content or name in NO_EVIDENCE or name == "run.json":  # its JSON may not be read any more
            continue
        (moved / name).write_bytes(bytes([content[0] ^ 1]) + content[1:])
        tried += 1
        try:
            if not check_seals(Bundle.open(moved)).problems:
                unnoticed.append(name)
        except BenchError:
            assert name.endswith(".sha256"), name
        (moved / name).write_bytes(content)
    shutil.rmtree(moved)
    assert unnoticed == []
    assert tried > 40


def test_what_the_machine_cannot_do_is_recorded_as_unsupported(finished: tuple[Path, str, str]) -> None:
    settings = {entry["id"]: entry for entry in document(finished[0] / "facts" / "tuning.json")["settings"]}
    assert {"cpu-governor", "aio-max-nr", "fan-mode", "bios-power-profile"} <= settings.keys()
    assert settings["bios-power-profile"]["status"] == "unsupported"
    assert "no BMC" in settings["bios-power-profile"]["detail"]
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").exists()
    assert (settings["cpu-governor"]["status"] == "unsupported") is not governor


def test_influxdb_holds_every_point_of_the_bundle(finished: tuple[Path, str, str]) -> None:
    bundle, url, _ = finished
    summary = document(bundle / "telemetry" / "summary.json")
    assert summary["points"]["undelivered"] == 0
    assert summary["workload"]["lines_rejected"] == 0, summary["workload"]["reasons"]
    for measurement, field in (
        ("block_device", "written_bytes"),
        ("cpu", "user_fraction"),
        ("daqwriter", "stored_bytes"),
    ):
        spooled = sum(
            1 for point in points_of(bundle / "telemetry" / "points.lp", {measurement}) if field in point.fields
        )
        assert spooled > 0, measurement
        stored = rows(url, f"SELECT count({field}) FROM {measurement} WHERE run = '{bundle.name}'")
        assert stored[0][1] == spooled, measurement
    last = rows(
        url, f"SELECT last(stored_bytes) FROM daqwriter WHERE run = '{bundle.name}' AND phase =~ /record|drain/"
    )
    minidaq = document(bundle / "results" / "snb_record.json")["repetitions"][0]["minidaq"]
    assert last[0][1] == minidaq["bytes"]["payload"]


def test_phases_tests_and_the_verdict_are_annotations_in_influxdb(finished: tuple[Path, str, str]) -> None:
    bundle, url, _ = finished
    texts = [row[1] for row in rows(url, f"SELECT text FROM bench_event WHERE run = '{bundle.name}'")]
    assert "PASS: The Supernova Burst Is Recorded And Read Back" in texts
    assert any(text.startswith("block size 1 MiB") for text in texts)
    where = f"WHERE run = '{bundle.name}'"
    verdicts = rows(
        url, f"SELECT outcome FROM history.bench_verdict WHERE of_run = '{bundle.name}' AND requirement = 'overall'"
    )
    assert [row[1] for row in verdicts] == ["INADMISSIBLE"]
    ((_, started_ns, trigger_ns, duration_s),) = rows(
        url, f"SELECT started_ns, trigger_ns, duration_s FROM history.bench_run {where}"
    )
    assert started_ns < trigger_ns < started_ns + duration_s * 1e9
    words = rows(url, f"SELECT word, outcome FROM history.bench_run {where}")
    assert [row[1:] for row in words] == [["BEGUN", None], [words[1][1], "INADMISSIBLE"]]
    # The verdict bears its run; phases and tests go by time, or each night would make new series for ever.
    kept = rows(url, f"SELECT kind, text FROM history.bench_event {where}")
    assert {"verdict"} <= {row[1] for row in kept} <= {"busy", "verdict"}
    then = f"host = 'this-machine' AND time >= {started_ns} AND time <= {started_ns + int(duration_s * 1e9)}"
    during = rows(url, f"SELECT kind, text FROM history.bench_event WHERE {then}")
    assert {
        ("phase", "laying out the block scan's file"),
        ("test", "PASS: The Supernova Burst Is Recorded And Read Back"),
    } <= {(kind, text) for _, kind, text in during}


def test_every_point_of_the_run_is_accounted_for(finished: tuple[Path, str, str]) -> None:
    account = document(finished[0] / "results" / "telemetry_account.json")
    assert account["invalid"] == account["limits"] == []
    assert account["influxdb"]["reached"] is True
    # How many points a run leaves follows from how long this machine takes for it; each collector gave some.
    for one in account["collectors"]:
        assert one["status"] == "unsupported" or 0 < one["collected_samples"] <= one["expected_samples"], one
    assert account["whole"]["present"] == sum(row["present"] for row in account["measurements"].values())
    for name, row in account["measurements"].items():
        lacking = sum(one["points"] for one in row["differences"] if one["step"] == "bundle to InfluxDB")
        assert row["stored"] - lacking == row["present"] > 0, name
    assert account["measurements"]["daqwriter"]["expected"] == account["measurements"]["daqwriter"]["stored"]


def test_every_query_of_the_dashboards_finds_rows_of_the_run(finished: tuple[Path, str, str]) -> None:
    """As Grafana sends them, compared with itself; without rows stays only what this machine, or this scenario, has not got."""
    bundle, url, _ = finished
    wanted: dict[str, Choice] = {"host": "this-machine", "run": bundle.name, "run_a": bundle.name}
    found = all_tried(Server(url), bundle.name, wanted)
    assert [one.text for one in unexcused(found, bundle)] == []
    assert sum(one.rows > 0 for one in found) > 60


def test_the_pdf_says_what_was_measured_and_what_was_scaled_down(finished: tuple[Path, str, str]) -> None:
    bundle = finished[0]
    pages = [page.extract_text() for page in PdfReader(bundle / "report.pdf").pages]
    text = " ".join(" ".join(pages).split())
    first = " ".join(pages[0].split())
    assert "REHEARSAL" in first
    assert "this-machine" in first
    assert "The load is 0.05 of one readout unit" in first
    for requirement in document(bundle / "verdict.json")["requirements"]:
        assert requirement["id"] in text
    for phrase in ("superchunk", "GiB/s", "block size", "Latency", "daq-bench qualify"):
        assert phrase.lower() in text.lower(), phrase
    assert (bundle / "report.html").read_text(encoding="utf-8").count("<svg") >= 3


@pytest.fixture
def mortal_server(tmp_path: Path) -> Iterator[LocalInflux]:
    """An InfluxDB that the test may stop and start; gone at its end, however it ends."""
    made = LocalInflux(LAYOUT.influxd, tmp_path / "influxdb")
    yield made
    made.stop()


def test_influxdb_dying_during_the_run_costs_no_telemetry(
    tmp_path: Path, disk: Path, mortal_server: LocalInflux
) -> None:
    server = mortal_server
    url = server.start(TEST_PORT + 50)
    argv = command(tmp_path, disk, url, "--scale", "0.02", "--duration", "6")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        wait_for_phase(run, tmp_path / "runs", "snb_record")
        assert server.stop()
        output, errors = run.communicate(timeout=300)
    assert run.returncode == 0, output + errors
    bundle = newest(tmp_path)
    summary = document(bundle / "telemetry" / "summary.json")
    assert summary["points"]["undelivered"] > 0
    assert "telemetry points are not in InfluxDB" in errors
    account = document(bundle / "results" / "telemetry_account.json")
    assert account["influxdb"]["reached"] is False
    assert account["influxdb"]["waiting"] > 0
    assert account["invalid"] == []
    assert undelivered(bundle)
    assert (bundle / "report.pdf").exists()
    restarted = server.start(int(url.rsplit(":", 1)[1]))
    assert restarted == url
    replayed = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "replay", str(bundle), "--influx-url", url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert not undelivered(bundle)
    later = document(bundle / "telemetry" / "account-after-replay.json")
    assert later["invalid"] == []
    assert later["whole"]["present"] > account["whole"]["stored"] / 2
    assert later["influxdb"]["waiting"] == 0
    assert later["sentence"] in replayed.stdout
    points = points_of(bundle / "telemetry" / "points.lp", {"daqwriter"})
    spooled = sum(1 for point in points if "stored_bytes" in point.fields)
    stored = rows(url, f"SELECT count(stored_bytes) FROM daqwriter WHERE run = '{bundle.name}'")
    assert stored[0][1] == spooled


def test_ctrl_c_cleans_up_and_a_second_run_is_refused_meanwhile(tmp_path: Path, disk: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_ports(1)[0]}"  # no InfluxDB at all: the run goes on without
    before = settings_now()
    argv = command(tmp_path, disk, nowhere, "--scale", "0.02", "--duration", "120")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        bundle = wait_for_phase(run, tmp_path / "runs", "snb_record")
        second = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 2
        assert f"is being qualified by process {run.pid}: daq-bench qualify" in second.stderr
        assert newest(tmp_path) == bundle
        wait_for(lambda: any(disk.glob("daq-bench-*/snb-record-1.daq")), "the record's file", 60)
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=120)
    assert run.returncode == 130, output + errors
    assert list(disk.iterdir()) == []
    assert settings_now() == before
    interrupted = document(bundle / "run.json")
    assert (interrupted["state"], interrupted["state_reason"]) == (
        "interrupted",
        "The run was interrupted during snb_record",
    )
    verdict = document(bundle / "verdict.json")
    assert (verdict["outcome"], verdict["reasons"]) == ("ERROR", ["The run was interrupted during snb_record"])
    assert any(True for _ in points_of(bundle / "telemetry" / "points.lp", {"cpu"}))
    rendered = subprocess.run(
        [sys.executable, "-m", "daq_bench.bench_report", "render", str(bundle)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rendered.returncode == 0, rendered.stderr


def test_a_run_that_breaks_in_provisioning_is_an_error_with_its_cause_everywhere(
    tmp_path: Path, disk: Path, influx: LocalInflux
) -> None:
    """The BMC's password is not there: verdict, exit status, terminal, page 1 and history say that, and nothing of another machine."""
    lab = YAML_SAFE.load(LAYOUT.inventory / "lab.yml")
    entry = lab["all"]["children"]["candidates"]["hosts"]["this-machine"]["bench_candidate"]
    entry["bmc"] = {"address": "127.0.0.1", "user": "admin", "password_env": "NO_SUCH_PASSWORD_HERE"}
    entry.setdefault("tuning", {})["fan_mode"] = "full"
    inventory = tmp_path / "lab.yml"
    YAML_SAFE.dump(lab, inventory)
    url = influx.start()
    argv = command(tmp_path, disk, url, "--scale", "0.02", "--duration", "3", "--inventory", str(inventory))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    verdict = document(newest(tmp_path) / "verdict.json")
    cause = "NO_SUCH_PASSWORD_HERE"
    assert verdict["outcome"] == "ERROR"
    assert verdict["reasons"][0].startswith("playbook provision failed on this-machine: ")
    assert cause in verdict["reasons"][0]
    assert done.stdout.split("Outcome: ERROR")[1].lstrip().startswith("- playbook provision failed on this-machine")
    first = PdfReader(newest(tmp_path) / "report.pdf").pages[0].extract_text()
    assert "ERROR" in first
    said = " ".join(first.split())
    assert said.index("playbook provision failed") < said.find("did not record") % len(said)
    words = rows(url, f"SELECT word, outcome FROM history.bench_run WHERE run = '{newest(tmp_path).name}'")
    assert [row[1:] for row in words] == [["BEGUN", None], ["ERROR", "ERROR"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--duration", "86400"], "is too small: the record of"),
        (["--duration", "1000000"], "it must be above 0 and at most 86400"),
        (["--target", "/dev/shm/daq-bench-test"], "does not lead to a drive (tmpfs)"),
        (["--scenario", "nemo"], "there is no such file. No name is near among the "),
        (["--candidate", "nemo"], "has no candidate 'nemo'. Known: this-machine"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    tmp_path: Path, disk: Path, options: list[str], message: str
) -> None:
    argv = [
        sys.executable,
        "-m",
        "daq_bench.rig",
        "qualify",
        "--runs",
        str(tmp_path / "runs"),
        "--target",
        str(disk),
        *options,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()
    assert list(disk.iterdir()) == []


def test_a_machine_that_is_not_the_declared_one_is_left_alone(tmp_path: Path, disk: Path) -> None:
    inventory = tmp_path / "lab.yml"
    text = (LAYOUT.inventory / "lab.yml").read_text(encoding="utf-8")
    inventory.write_text(text.replace("cpus_min: 2", "cpus_min: 4096"), encoding="utf-8")
    before = settings_now()
    argv = [sys.executable, "-m", "daq_bench.rig", "qualify", "--runs", str(tmp_path / "runs"), "--target", str(disk)]
    done = subprocess.run(
        [*argv, "--inventory", str(inventory)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "is not the candidate 'this-machine'" in done.stderr
    assert "CPUs: declared at least 4096, found" in done.stderr
    assert not (tmp_path / "runs").exists()
    assert settings_now() == before


def test_a_misspelt_key_in_a_users_scenario_is_named_with_its_line(tmp_path: Path) -> None:
    scenario, _ = write_profiles(tmp_path, block_scan=False)
    text = scenario.read_text(encoding="utf-8").replace("duration_s:", "duration:")
    scenario.write_text(text, encoding="utf-8")
    line = next(number for number, one in enumerate(text.splitlines(), start=1) if one.startswith("duration:"))
    argv = [
        sys.executable,
        "-m",
        "daq_bench.rig",
        "qualify",
        "--scenario",
        str(scenario),
        "--runs",
        str(tmp_path / "runs"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"{scenario}:{line}: duration: unknown key 'duration'. Did you mean duration_s?" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_requirement_that_the_scenario_cannot_answer_is_refused(tmp_path: Path, disk: Path) -> None:
    scenario, _ = write_profiles(tmp_path, block_scan=False)
    argv = [sys.executable, "-m", "daq_bench.rig", "qualify", "--scenario", str(scenario), "--target", str(disk)]
    done = subprocess.run(
        [*argv, "--runs", str(tmp_path / "runs")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "SNB-07 bounds 'block_scan.large_block_throughput', which scenario 'short' does not yield" in done.stderr
    assert "requirements/dune-snb.yml:" in done.stderr
    assert not (tmp_path / "runs").exists()
