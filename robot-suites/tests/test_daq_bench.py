"""`daq-bench`, the installed command: a wheel in an environment of its own, outside and inside of a checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "reports" / "tests"))
from bundle_factory import make

from daq_bench.rig.base import settings
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.rig.cli import COMMANDS, main


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a built wheel in a fresh environment, whose requirements are lent from ours."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # A build leaves folders beside its sources: a copy of what is tracked or new, and of nothing ignored.
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=Layout().repository,
        capture_output=True,
        check=True,
    ).stdout
    source.mkdir()
    copied = subprocess.run(
        ["cpio", "--null", "-pdm", "--quiet", str(source)], input=listed, cwd=Layout().repository, check=False
    )
    if copied.returncode != 0:
        pytest.fail("the checkout could not be copied")
    (source / "build" / "lib" / "audit").mkdir(parents=True)  # as a build of an older version left it
    (source / "build" / "lib" / "audit" / "__init__.py").touch()
    build = "import setuptools.build_meta as b; print(b.build_wheel(__import__('sys').argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wheel = folder / done.stdout.splitlines()[-1]
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True)
    return environment / "bin" / "daq-bench"


def run(command: Path, *words: str, where: Path) -> subprocess.CompletedProcess[str]:
    # A path's .pth files are not followed, so that our own editable install stays out.
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"]}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each call would compile all of ours again
    return subprocess.run(
        [command, *words], cwd=where, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A sealed bundle, made as for the reports' tests."""
    folder = tmp_path / "runs" / "20260101T000000Z-snb-01"
    folder.mkdir(parents=True)
    make(folder)
    seal_evidence(folder)
    return folder


def test_a_wheel_has_our_name_at_its_top_twice_and_none_of_the_developers_tools(installed: Path) -> None:
    show = [installed.parent / "pip", "show", "--files", "daq-storage-bench"]
    said = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    files = [line.strip() for line in said.partition("Files:\n")[2].splitlines()]
    assert "daq_bench/rig/console.py" in files
    jobs = {file.rpartition("/")[2] for file in files if file.endswith(".fio")}
    assert jobs == {file.name for file in Layout().fio_jobs.glob("*.fio")}
    tops = {file.split("/")[0] for file in files if not file.startswith("..")}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"daq_bench", "DaqBench.py", "__pycache__"}
    assert [file for file in files if file.startswith("..")] == ["../../../bin/daq-bench"]
    packages = {file.split("/")[1] for file in files if file.startswith("daq_bench/")}
    assert packages - {"__pycache__"} == {
        *(
            "__init__.py",
            "analysis_reader",
            "bench_dashboards",
            "bench_model",
            "bench_report",
            "bundle",
            "candidate_kit",
            "rig",
            "telemetry_agent",
            "workloads",
        )
    }


def test_with_a_wheel_installed_one_name_reads_a_bundle(installed: Path, stored: Path, tmp_path: Path) -> None:
    words = "from daq_bench import Bundle; import sys; print(Bundle(sys.argv[1]).run.scenario.id, Bundle(sys.argv[1]).standing)"
    done = run(installed.parent / "python", "-c", words, str(stored), where=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[1:] == ["sealed"]


def test_the_package_holds_no_other_name_and_loads_no_library(tmp_path: Path) -> None:
    """The agent and the programs of a candidate import it where there is no library."""
    words = "import sys, daq_bench.candidate_kit; print(sorted({'msgspec', 'numpy'} & set(sys.modules))); from daq_bench import bundel"
    done = run(Path(sys.executable), "-c", words, where=tmp_path)
    assert done.returncode == 1 and done.stdout == "[]\n"
    assert "cannot import name 'bundel' from 'daq_bench'" in done.stderr


def test_with_a_wheel_installed_robot_finds_the_library(installed: Path, tmp_path: Path) -> None:
    done = run(installed.parent / "python", "-m", "robot.libdoc", "DaqBench", "list", where=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Record Burst" in done.stdout.splitlines()
    suite = tmp_path / "my.robot"
    suite.write_text(
        "*** Settings ***\nLibrary    DaqBench\n*** Test Cases ***\nOne\n    Provision Candidate\n", encoding="utf-8"
    )
    done = run(installed.parent / "python", "-m", "robot", "--output", "NONE", str(suite), where=tmp_path)
    assert "Provision Candidate needs a checkout of the bench" in " ".join(done.stdout.split()), (
        done.stdout + done.stderr
    )


def test_a_wheel_asks_for_no_package_that_the_virtual_candidate_alone_needs(installed: Path) -> None:
    (metadata,) = installed.parent.parent.glob("lib/*/site-packages/daq_storage_bench-*.dist-info/METADATA")
    asked = re.findall(r"^Requires-Dist: ([\w.-]+)[^;\n]*$", metadata.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"msgspec", "weasyprint"} <= set(asked)
    assert "cryptography" not in asked


def test_outside_of_a_checkout_a_wheel_does_what_needs_no_candidate(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "validate", "--json", where=tmp_path)
    assert done.returncode == 0, done.stderr
    here = [line for line in json.loads(done.stdout)["valid"] if line.startswith(("scenarios/", "requirements/"))]
    assert len(here) == sum(
        len(list((Layout().inventory / name).glob("*.yml"))) for name in ("scenarios", "requirements")
    )
    done = run(installed, "doctor", "--json", where=tmp_path)
    findings = {one["subject"]: one for one in json.loads(done.stdout)}
    assert done.returncode == 1
    assert "`make setup`" in findings["checkout"]["remedy"]
    assert "daqwriter" not in findings
    done = run(installed, "dashboards", "write", where=tmp_path)
    assert done.returncode == 0, done.stderr
    written, here = tmp_path / "dashboards", Layout().repository / "reports" / "dashboards"
    names = sorted(file.relative_to(written) for file in written.rglob("*.json"))
    assert names == sorted(file.relative_to(here) for file in here.rglob("*.json"))
    for name in names:
        assert (written / name).read_bytes() == (here / name).read_bytes()


def test_outside_of_a_checkout_a_wheel_judges_and_reports_on_a_stored_run(
    installed: Path, stored: Path, tmp_path: Path
) -> None:
    done = run(installed, "judge", str(stored), "--json", where=tmp_path)
    assert done.returncode == 0, done.stderr  # a declared rehearsal: it missed no mandatory requirement
    assert json.loads(done.stdout)["outcome"] == "INADMISSIBLE"
    done = run(installed, "report", str(stored), "--json", where=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [Path(file).name for file in json.loads(done.stdout)["files"]] == [
        "report.html",
        "report.pdf",
        "report-data.json",
    ]
    assert (stored / "report.pdf").read_bytes().startswith(b"%PDF")
    done = run(installed, "check-bundle", str(stored), "--json", where=tmp_path)
    found = json.loads(done.stdout)
    assert not found["ok"], "check-bundle accepts a made-up bundle"
    assert any(line.startswith("numbers    recomputed: ") for line in found["lines"]), found["lines"]


@pytest.mark.parametrize(
    "command", [*(name for name, one in COMMANDS.items() if one.needs_checkout), "virtual", "bench"]
)
def test_what_needs_a_checkout_says_so(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "IN_CHECKOUT", False)
    monkeypatch.chdir(tmp_path)
    more = {"resume": ["runs/x"], "replay": ["runs/x"], "influx": ["start"]}
    assert main([command, *more.get(command, [])]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: `{command}` needs a checkout of the bench")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_document_was_asked_for_and_an_error_is_one_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-bundle", "runs/nope", "--json"]) == 2
    said = capsys.readouterr()
    assert "no run bundle" in json.loads(said.out)["error"]
    assert said.err.startswith("error: ")


def test_an_installed_wheel_says_what_it_is_and_lists_what_it_brought(installed: Path, tmp_path: Path) -> None:
    assert re.fullmatch(
        r"daq-bench \d+\.\d+\.\d+ \(installed, .*\)\n", run(installed, "--version", where=tmp_path).stdout
    )
    names = run(installed, "list", "scenarios", "--names", where=tmp_path).stdout.split()
    assert names == sorted(file.stem for file in (Layout().inventory / "scenarios").glob("*.yml"))


def test_inside_of_a_checkout_it_is_that_checkouts_bench(installed: Path) -> None:
    done = run(installed, "doctor", "--json", where=Layout().repository / "docs")
    findings = {one["subject"]: one for one in json.loads(done.stdout)}
    assert findings["checkout"]["found"] == str(Layout().repository)
    assert "daqwriter" in findings


def test_the_completion_offers_commands_and_options(installed: Path) -> None:
    script = run(installed, "completion", where=Layout().repository).stdout
    for words, offered in (
        ("daq-bench disc", "discover"),
        ("daq-bench doctor --js", "--json"),
        ("daq-bench compare --pr", "--prices"),
    ):
        ask = f'{script}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _daq_bench; echo "${{COMPREPLY[@]}}"'
        path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", ask], env=path, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.split() == [offered], done.stderr
