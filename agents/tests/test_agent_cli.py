"""The command line, and the promises about Python's version and the packed archive."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from agent_helpers import (
    AGENTS,
    assert_adds_up,
    load,
    run_cli,
    running_agent,
    spooled,
    undeclared,
    wait_for,
)
from test_agent_workload import record

from build_pyz import archive
from daq_bench.telemetry_agent.agent import SUMMARY_PERIOD_S

PACKAGE, KIT = AGENTS / "daq_bench" / "telemetry_agent", AGENTS / "daq_bench" / "candidate_kit"
INFLUX = ("--influx-url", "http://127.0.0.1:9", "--database", "bench")
QUIET = ("run", "--spool-dir", "D", "--no-influx")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "run|replay|status"),
        (("walk",), "walk"),
        (("run",), "--spool-dir"),
        (("run", "--spool-dir", "D"), "--influx-url is missing (or give --no-influx)"),
        (("run", "--spool-dir", "D", "--influx-url", "http://h:1"), "--database is missing"),
        (
            ("run", "--spool-dir", "D", "--influx-url", "localhost", "--database", "d"),
            "expected http://HOST:PORT",
        ),
        (
            ("run", "--spool-dir", "D", "--influx-url", "http://h:x", "--database", "d"),
            "expected http://HOST:PORT",
        ),
        (("run", "--spool-dir", "D", "--influx-url", "http://u:p@h:1", "--database", "d"), "credentials"),
        (("run", "--spool-dir", "D", "--no-influx", *INFLUX), "contradicts"),
        (("run", "--spool-dir", "D", "--no-influx", "--period", "0"), "outside 0.1 to 3600 s"),
        (("run", "--spool-dir", "D", "--no-influx", "--period", "nan"), "outside"),
        (("run", "--spool-dir", "D", "--no-influx", "--period", "fast"), "not a number"),
        (("run", "--spool-dir", "D", *INFLUX, "--drain-seconds", "-1"), "outside"),
        (("run", "--spool-dir", "D", "--no-influx", "--tag", "host"), "KEY=VALUE"),
        (("run", "--spool-dir", "D", "--no-influx", "--tag", "host="), "empty value of tag 'host'"),
        (("run", "--spool-dir", "D", "--no-influx", "--tag", "a=1", "--tag", "a=2"), "twice"),
        ((*QUIET, "--collectors", "cpu,gpu"), "there is no collector 'gpu': choose from block_device, cpu,"),
        ((*QUIET, "--collectors", "ipmi_lan"), "there is no collector 'ipmi_lan'"),
        ((*QUIET, "--collectors", "cpu", "--without-collectors", "cpu"), "no collector is left"),
        ((*QUIET, "--ipmi-lan", "bmc"), "--ipmi-user is missing"),
        ((*QUIET, "--ipmi-lan", "bmc", "--ipmi-user", "u"), "the environment variable IPMI_PASSWORD is not set"),
        ((*QUIET, "--ipmi-port", "623"), "--ipmi-lan is missing"),
        ((*QUIET, "--ipmi-lan", "b", "--ipmi-port", "65536"), "'65536' is no number from 1 to 65535"),
        ((*QUIET, "--ipmi-lan", "b", "--ipmi-cipher-suite", "-1"), "'-1' is no number from 0 to 17"),
        ((*QUIET, "--redfish-port", "443"), "--ipmi-lan is missing"),
        ((*QUIET, "--redfish-insecure"), "--redfish-port is missing"),
        ((*QUIET, f"--redfish-fingerprint={'a' * 64}"), "--redfish-port is missing"),
        ((*QUIET, "--redfish-fingerprint=AB:CD"), "'AB:CD' is no SHA-256 in hexadecimal digits"),
        ((*QUIET, f"--redfish-fingerprint={'g' * 64}"), "is no SHA-256 in hexadecimal digits"),
        ((*QUIET, "--instance", "a\\"), "--instance 'a\\\\'"),
        (("replay", "--spool-dir", "D", *INFLUX), "no points.lp"),
        (("status", "--spool-dir", "D"), "no points.lp"),
    ],
)
def test_bad_arguments_give_one_line_and_exit_2(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """And nothing is written."""
    directory = tmp_path / "spool"
    done = run_cli(*[str(directory) if argument == "D" else argument for argument in arguments])
    assert done.returncode == 2
    assert done.stderr.startswith("telemetry_agent: error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not directory.exists()


def test_only_the_collectors_that_are_asked_for_run(tmp_path: Path) -> None:
    """And the agent's own points bear its name, so that two agents of one run can be told apart."""
    with running_agent(tmp_path / "a", "--no-influx", "--collectors=cpu,memory", "--instance=second") as agent:
        wait_for(lambda: agent.spooled_lines() > 6, "points")
        summary = agent.terminate()
    assert [one["name"] for one in summary["collectors"]] == ["cpu", "memory", "agent_status"]
    own = [point for point in spooled(tmp_path / "a") if point.measurement == "telemetry_agent"]
    assert {dict(point.tags)["instance"] for point in own} == {"second"}


def test_a_token_without_org_is_refused_without_showing_it(tmp_path: Path) -> None:
    """The message names the variable only."""
    done = run_cli("run", "--spool-dir", str(tmp_path / "s"), *INFLUX, DAQ_BENCH_INFLUX_TOKEN="s3cret")
    assert done.returncode == 2
    assert "--org is missing" in done.stderr
    assert "s3cret" not in done.stderr


def test_a_run_without_influx_accounts_for_everything(tmp_path: Path) -> None:
    """On this machine: declared points with the run's tags, a summary that adds up, exit 0 on SIGTERM."""
    workload = tmp_path / "workload.lp"
    arguments = (
        "--no-influx",
        "--period",
        "0.2",
        "--tag",
        "host=h",
        "--tag",
        "run=r",
        "--workload-file",
        str(workload),
    )
    with running_agent(tmp_path / "spool", *arguments) as agent:
        workload.write_text(record(1) + record(2) + "broken\n" + "daqwriter offe")
        wait_for(lambda: agent.spooled_lines() > 60, "60 points")
        summary = agent.terminate()
    points = spooled(tmp_path / "spool")
    for point in points:
        assert undeclared(point) == []
        assert {("host", "h"), ("run", "r")} <= set(point.tags)
    assert {"cpu", "memory", "telemetry_agent", "daqwriter"} <= {point.measurement for point in points}
    assert_adds_up(summary["points"])
    assert summary["points"]["spooled"] == summary["points"]["undelivered"] == len(points)
    assert sum(entry["points"] for entry in summary["collectors"]) == len(points)
    assert summary["state"] == "finished"
    assert summary["influx"]["enabled"] is False
    seen = [summary["workload"][f"lines_{what}"] for what in ("seen", "passed", "rejected")]
    assert seen == [3, 2, 1]
    assert summary["workload"]["unfinished_line_bytes"] == len("daqwriter offe")
    statuses = {entry["name"]: entry["status"] for entry in summary["collectors"]}
    assert statuses["cpu"] == statuses["memory"] == statuses["workload"] == statuses["agent_status"] == "ok"
    for entry in summary["collectors"]:
        assert entry["collected_samples"] + entry["missed_samples"] == entry["expected_samples"]
        assert entry["status"] != "unsupported" or entry["detail"]


def test_killed_and_started_again_the_agent_continues_its_spool(tmp_path: Path) -> None:
    """SIGKILL, a torn line, a restart: old points stay, the torn line goes, no record comes twice."""
    spool, workload = tmp_path / "spool", tmp_path / "workload.lp"
    workload.write_text(record(1) + record(2))
    arguments = ("--no-influx", "--period", "0.2", "--workload-file", str(workload))
    with running_agent(spool, *arguments) as agent:
        wait_for(lambda: agent.spooled_lines() > 20, "20 points")
        agent.kill()
    assert load(spool / "summary.json")["state"] == "running"
    before = (spool / "points.lp").read_bytes()
    with (spool / "points.lp").open("ab") as stream:
        stream.write(b"torn x=")
    with workload.open("a") as stream:
        stream.write(record(3))
    with running_agent(spool, *arguments) as agent:
        wait_for(lambda: agent.spooled_lines() > before.count(b"\n") + 20, "20 more points")
        summary = agent.terminate()
    assert (spool / "points.lp").read_bytes().startswith(before)
    records = [point.time_ns for point in spooled(spool) if point.measurement == "daqwriter"]
    assert records == [1, 2, 3]
    assert summary["spool"]["torn_bytes"] == len("torn x=")
    assert summary["spool"]["recovered_points"] == before.count(b"\n")
    assert summary["workload"]["lines_skipped_as_spooled"] == 2
    assert_adds_up(summary["points"])


def test_status_tells_a_running_from_a_finished_agent_and_a_second_agent_is_refused(tmp_path: Path) -> None:
    """Status only looks; the spool has one owner."""
    spool = str(tmp_path)
    with running_agent(tmp_path, "--no-influx") as agent:
        assert '"running": true' in run_cli("status", "--spool-dir", spool).stdout
        for command in (
            ("run", "--spool-dir", spool, "--no-influx"),
            ("replay", "--spool-dir", spool, *INFLUX),
        ):
            second = run_cli(*command)
            assert second.returncode == 1
            assert "in use by another telemetry_agent" in second.stderr
        agent.terminate()
    assert '"running": false' in run_cli("status", "--spool-dir", spool).stdout


def test_the_sources_are_python_3_9_and_import_the_standard_library_only() -> None:
    """Candidates may run an old enterprise distribution."""
    names: set[str] = set()
    for path in [*PACKAGE.rglob("*.py"), *KIT.rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    ours = ("daq_bench.telemetry_agent.", "daq_bench.candidate_kit.")
    foreign = {name for name in names if not f"{name}.".startswith(ours)}
    assert {name.split(".")[0] for name in foreign} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("package", ["telemetry_agent", "analysis_reader"])
def test_the_archive_holds_the_kit_as_it_lies_here_and_reads_with_it(package: str, tmp_path: Path) -> None:
    """Alone on a candidate: no other part of ours is found there."""
    packed = tmp_path / f"{package}.pyz"
    packed.write_bytes(archive(PACKAGE.with_name(package)))
    with zipfile.ZipFile(packed) as stream:
        held = {name: stream.read(name) for name in stream.namelist() if "/candidate_kit/" in name}
    assert held == {f"daq_bench/candidate_kit/{file.relative_to(KIT)}": file.read_bytes() for file in KIT.rglob("*.py")}
    assert {"daq_bench/candidate_kit/__init__.py", "daq_bench/candidate_kit/plausible.py"} <= held.keys()
    text = (
        f"import sys; sys.path.insert(0, {str(packed)!r}); from daq_bench.candidate_kit import plausible as one; "
        "print(one.__file__, one.is_running_degrees(31.0), one.is_running_degrees(-273.15))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{packed}/daq_bench/candidate_kit/plausible.py", "True", "False"]


def test_the_archive_is_deterministic_and_runs(tmp_path: Path) -> None:
    """Same sources, same bytes; one file is the whole agent."""
    assert archive(PACKAGE) == archive(PACKAGE)
    output = tmp_path / "telemetry_agent.pyz"
    subprocess.run([sys.executable, str(AGENTS / "build_pyz.py"), "--output", str(output)], check=True)
    assert output.read_bytes() == archive(PACKAGE)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(output), "status", "--spool-dir", "nowhere"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2, "telemetry_agent: error: --spool-dir nowhere: no points.lp in it\n",
    )  # fmt: skip


def test_an_agent_that_stood_still_goes_on(tmp_path: Path) -> None:
    """As with a suspended machine: longer than the summary's period, in which the main thread waits."""
    with running_agent(tmp_path, "--no-influx", "--collectors", "cpu") as agent:
        agent.process.send_signal(signal.SIGSTOP)
        time.sleep(SUMMARY_PERIOD_S + 1)
        agent.process.send_signal(signal.SIGCONT)
        before = agent.spooled_lines()
        wait_for(lambda: agent.spooled_lines() > before + 2, "points after the pause")
        assert agent.terminate()["state"] == "finished"
