"""Runs the scenario's Robot Framework suites in their own process; the suites' files are named after the workloads."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.shell import LocalShell, Shell
from daq_bench.rig.base.terminal import printable_lines

if TYPE_CHECKING:
    from daq_bench.rig.run.targets import Targets

IDENTITY = "identity"
RUN_S_MAX = 7 * 86400.0  # bounds a forgotten endurance run; each command inside has its own, tighter limit


class Loads(Protocol):
    """The loads of a candidate between provisioning and giving back."""

    def load(self, targets: Targets, bundle: Bundle, environment: Mapping[str, str]) -> None:
        """Loads the candidate. `environment`: what a process that does it needs besides ours. Raises BenchError when the bench breaks."""

    def given_back(self, bundle: Bundle) -> None:
        """The candidate was given back, whatever happened; nothing is derived or judged yet."""


class ScenarioSuites:
    """The scenario's own suites, one after another."""

    def load(self, targets: Targets, bundle: Bundle, environment: Mapping[str, str]) -> None:
        session = targets.first
        run_suites(LocalShell(), session.layout.repository, bundle, session.profiles.scenario, environment)

    def given_back(self, bundle: Bundle) -> None:
        """Their output is in the bundle already."""


def suite_files(repository: Path, scenario: Scenario) -> list[Path]:
    """Returns the suites, identity first: with --exitonfailure nothing is written to a machine that is not the declared one."""
    folder = repository / "robot-suites" / "suites"
    files = [folder / f"{name}.robot" for name in (IDENTITY, *scenario.workloads)]
    for file in files:
        if not file.exists():
            raise BenchError(
                f"{scenario.file}: workload {file.stem!r} has no suite {file}. Write one, or correct the workload's name"
            )
    return files


def run_suites(
    shell: Shell, repository: Path, bundle: Bundle, scenario: Scenario, environment: Mapping[str, str]
) -> None:
    """Runs the suites with `environment` besides ours.

    Raises BenchError that quotes the failed test; its own output stays in the bundle's robot/."""
    output = bundle.path / "robot"
    listener = repository / "robot-suites" / "libraries" / "RunListener.py"
    argv: list[str | Path] = [
        *(sys.executable, "-m", "robot"),
        *("--outputdir", output, "--xunit", "xunit.xml", "--report", "NONE"),
        *("--name", scenario.id, "--exitonfailure", "--consolecolors", "off"),
        *("--pythonpath", repository / "robot-suites" / "libraries"),
        *("--listener", f"{listener}:{bundle.path}", "--variable", f"BUNDLE:{bundle.path}"),
        *suite_files(repository, scenario),
    ]
    completed = shell.run(argv, timeout_s=RUN_S_MAX, env={"PYTHONUNBUFFERED": "1", **environment})
    (output / "console.txt").write_text(printable_lines(completed.stdout + completed.stderr), encoding="utf-8")
    if completed.returncode != 0:
        raise BenchError(first_failure(output / "output.xml") or completed.check("robot").stdout)


def first_failure(output_xml: Path) -> str | None:
    """`suite / test: message` of the first failed test of a Robot output, None when there is none to read."""
    try:
        root = ElementTree.parse(output_xml).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    for suite in root.iter("suite"):
        for test in suite.findall("test"):
            status = test.find("status")
            if status is not None and status.get("status") == "FAIL":
                return f"{suite.get('name')} / {test.get('name')}: {(status.text or '').strip()}"
    return None
