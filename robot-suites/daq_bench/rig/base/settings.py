"""The folders of a checkout, and the request of one `qualify`."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.places import IN_CHECKOUT, REPOSITORY
from daq_bench.bench_model.evidence.demanded_load import check_load
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.compared_targets import check_compared
from daq_bench.bench_model.profiles.metrics import ResultMetric, load_metrics
from daq_bench.bench_model.profiles.published import FOLDER, load_published
from daq_bench.bench_model.profiles.requirements import RequirementProfile, check_yields, load_requirements
from daq_bench.bench_model.profiles.scenarios import Scenario, check_scenario_metrics, load_scenario

DEFAULT_PROFILE = "dune-snb"
IMPORT_ROOT = "daq_bench"
KIT = "candidate_kit"  # is in every archive
PACKED_ALONE = ("__main__.py", f"{IMPORT_ROOT}/__init__.py")  # what agents/build_pyz.py makes itself
NO_FOLDER = Path("/dev/disk/to-be-found-by-its-serial")
NOT_PUT_BACK = ("*-before.json", "restarting.json", "fans-lease.json")


@dataclass(frozen=True)
class Layout:
    """The folders of one checkout; without one, what is read comes from the wheel and what is written goes to where the user stands."""

    repository: Path = REPOSITORY

    @property
    def is_checkout(self) -> bool:
        return IN_CHECKOUT or self.repository != REPOSITORY

    @property
    def home(self) -> Path:
        """The folder whose runs, nights and states these are."""
        return self.repository if self.is_checkout else Path.cwd()

    @property
    def inventory(self) -> Path:
        return self.repository / "inventory"

    @property
    def fio_jobs(self) -> Path:
        return self.repository / "robot-suites" / "fio"

    @property
    def ansible(self) -> Path:
        return self.repository / "ansible"

    @property
    def module_utils(self) -> Path:
        """Our parts of Ansible's modules that know nothing of Ansible: the guard of drives, BMCs, the kernel's facts."""
        return self.ansible / "module_utils"

    @property
    def build(self) -> Path:
        return self.home / "build"

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    @property
    def daqwriter(self) -> Path:
        return self.build / "native-writer" / "daqwriter"

    @property
    def portable_daqwriter(self) -> Path:
        """The same program for other machines: it needs glibc alone (docs/adr/0007)."""
        return self.build / "native-writer" / "portable" / "daqwriter"

    @property
    def hotstore(self) -> Path:
        """Needs glibc alone: one program for this machine and for others."""
        return self.build / "hot_store" / "hotstore"

    @property
    def netprobe(self) -> Path:
        """Needs glibc alone, too."""
        return self.build / "network_probe" / "netprobe"

    @property
    def programs(self) -> dict[str, Path]:
        """The programs that only some workloads need, by name."""
        return {file.name: file for file in (self.hotstore, self.netprobe)}

    @property
    def agent(self) -> Path:
        return self.build / "telemetry_agent.pyz"

    @property
    def analysis_reader(self) -> Path:
        return self.build / "analysis_reader.pyz"

    def stale_archive(self) -> Path | None:
        """Returns the first archive that is not made of the sources that lie here: a candidate would be watched by another version than the
        one that the bundle names. None where all are, and in an installed wheel, which makes no runs."""
        return next((file for file in (self.agent, self.analysis_reader) if not self._is_current(file)), None)

    def _is_current(self, archive: Path) -> bool:
        agents = self.repository / "agents"
        if not agents.is_dir():
            return True
        try:
            with zipfile.ZipFile(archive) as stream:
                held = {name: stream.read(name) for name in stream.namelist() if name not in PACKED_ALONE}
        except (OSError, ValueError, RuntimeError, zipfile.BadZipFile):  # whatever lies there is no archive of ours
            return False
        folders = [agents / IMPORT_ROOT / name for name in (archive.stem, KIT)]
        sources = [file for folder in folders for file in folder.rglob("*.py")]
        return held == {file.relative_to(agents).as_posix(): file.read_bytes() for file in sources}

    @property
    def influxd(self) -> Path:
        return self.build / "tools" / "influxd"

    @property
    def influx_data(self) -> Path:
        """The folder of the bench's own server."""
        return self.build / "influxdb"

    def install_directory(self, candidate: str) -> Path:
        """The folder for the bench's programs on a candidate that is this machine; Ansible puts them there."""
        return self.build / "candidate" / candidate

    def state_directory(self, candidate: str) -> Path:
        """The folder that keeps the settings from before provisioning until `restore`: outside build/, which users may remove.

        What an earlier version left in build/ stays there until `make clean` moves it: a fan guard may be running from it."""
        before = self.build_state / candidate
        return before if before.is_dir() and not (self.state / candidate).is_dir() else self.state / candidate

    @property
    def state(self) -> Path:
        return self.home / "state"

    @property
    def build_state(self) -> Path:
        """The folder in which earlier versions kept it."""
        return self.build / "state"

    def to_put_back(self) -> list[Path]:
        """The files which show that some setting of a candidate is still to be put back."""
        folders = (self.state, self.build_state)
        return sorted(file for one in folders for pattern in NOT_PUT_BACK for file in one.glob(f"*/{pattern}"))


@dataclass(frozen=True)
class Request:
    """The request of `daq-bench qualify`: names or paths of profiles, and the values that override them."""

    candidate: str = "this-machine"
    target: str | None = None
    scenario: str | None = None  # None: the candidate's own choice
    requirement: str | None = None
    scale: float | None = None
    duration_s: float | None = None
    inventory: Path | None = None
    runs: Path | None = None
    target_directory: Path | None = None
    influx_url: str | None = None
    keep_tuning: bool = False
    yes: bool = False  # somebody agrees to what the plan says must be agreed to
    challenge: str | None = None  # a buyer's nonce
    resumes: str | None = None  # id of the interrupted run that this one continues


@dataclass(frozen=True)
class Profiles:
    """The four profiles of a run, loaded and checked against each other."""

    candidate: Candidate
    scenario: Scenario
    requirement: RequirementProfile
    metrics: dict[str, ResultMetric]
    inventory_file: Path
    metrics_file: Path


def profile_file(folder: Path, name: str) -> Path:
    """`name` is a profile's id, or the path of a YAML file of the user's own. Raises BenchError for a file that is named like neither."""
    if "/" in name or name.endswith((".yml", ".yaml")):
        return Path(name)
    known = folder / f"{name}.yml"
    if Path(name).is_file() and not known.is_file():
        raise BenchError(f"{name}: is a file whose name does not end with .yml. Name a YAML file, or an id of {folder}")
    return known


def load_profiles(request: Request, layout: Layout) -> Profiles:
    """Raises ProfileError for anything wrong in the users' YAML, before a machine is touched."""
    inventory_file = request.inventory or layout.inventory / "lab.yml"
    metrics_file = layout.inventory / "metrics.yml"
    candidate = load_candidate(inventory_file, request.candidate)
    if request.target is not None:
        candidate = candidate.aimed_at(request.target)
    chosen = request.scenario or candidate.document.get("scenario", DEFAULT_PROFILE)
    scenario = load_scenario(profile_file(layout.inventory / "scenarios", chosen))
    metrics = load_metrics(metrics_file)
    check_scenario_metrics(scenario, metrics)
    judged_by = request.requirement or _requirement_of(request, candidate, scenario)
    requirement = load_requirements(profile_file(layout.inventory / "requirements", judged_by), metrics)
    check_yields(requirement, scenario)
    check_load(requirement, scenario)
    check_compared(scenario, candidate, inventory_file)
    load_published(layout.inventory / FOLDER)  # the report draws them: find a broken file now, not after the run
    return Profiles(
        candidate,
        scenario.altered(request.scale, request.duration_s),
        requirement,
        metrics,
        inventory_file,
        metrics_file,
    )


def _requirement_of(request: Request, candidate: Candidate, scenario: Scenario) -> str:
    """A scenario asked for by name brings the requirements that belong to it; else the candidate's own choice comes first."""
    choices = [scenario.document.get("requirement"), candidate.document.get("requirement")]
    if request.scenario is None:
        choices.reverse()
    return next((choice for choice in choices if choice), DEFAULT_PROFILE)


def target_directory(layout: Layout, candidate: Candidate, asked: Path | None = None) -> Path:
    """Returns the folder that a run writes in: the one asked for, else the inventory's; relative ones are below the checkout.

    For a raw drive, whose device node only the candidate knows, it is a folder that is never made."""
    if candidate.target.is_raw:
        if asked is not None:
            raise BenchError(
                f"candidate {candidate.name!r} is qualified on a raw drive; {typed('--target', asked)} would be a folder. Leave it out"
            )
        return NO_FOLDER
    folder = asked or Path(candidate.target.directory)
    return folder if folder.is_absolute() else layout.repository / folder
