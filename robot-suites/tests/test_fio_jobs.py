"""fio's job files: each one makes fio do what its argument list did, a wrong value is refused, and a bundle is held to file and values."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.documents.results import WearExperiment
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.workloads.read_scan import Key
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import LocalShell, program_of
from daq_bench.rig.candidate.load_target import FileTarget, RawDevice
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads import read_scan
from daq_bench.rig.workloads.endurance import step as endurance
from daq_bench.rig.workloads.interference.activities import KINDS, Fio, Setting
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.conditioning import Conditioner
from daq_bench.rig.workloads.shared.fio_job import JobFile, JobFiles
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.write_point import measure_write
from daq_bench.rig.workloads.steady_state import tests as steady_tests
from daq_bench.rig.workloads.steady_state.workload import SteadyPlan, _run_round
from daq_bench.rig.workloads.thermal import load as thermal
from daq_bench.rig.workloads.thermal.load import Load
from daq_bench.rig.workloads.thermal.load import Plan as SoakPlan

LAYOUT = Layout()
# fio's command lines from before there were job files, by measurement
BEFORE: dict[str, str] = json.loads((Path(__file__).parent / "recorded" / "fio-arguments.json").read_text("utf-8"))
DISK, WORK = Path("/disk"), Path("/work-there")
KIB, MIB = 2**10, 2**20
OF_COMMAND = ("--output-format=", "--trigger-file=", "--aux-path=")
Options = dict[str, str]
ALIASES = {"iomem": "mem", "blockalign": "ba"}  # fio's other words for one option


class StartedError(Exception):
    """fio was about to start."""


class Caught(LocalMachine):
    """Keeps the job files that it is given and fio's command line, and starts nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}
        self.argv: list[str] = []

    def put(self, path: Path, text: str) -> None:
        self.files[str(path)] = text

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> NoReturn:
        self.argv = [str(word) for word in argv]
        raise StartedError


SCAN: dict[str, Any] = {"seconds_per_point": 1, "ramp_s": 0.25, "io_depth": 4, "file_size": 64 * MIB + 5}
WEAR: dict[str, Any] = {
    "file_size": 2**30 + 77, "step_size": 2**28, "io_depth": 16, "sequential_block_size": MIB, "random_block_size": 4 * KIB,
    "random_percent": 25,
}  # fmt: skip
SOAK: dict[str, Any] = {"block_size": MIB, "file_size": 2**25 + 3, "io_depth": 8}
BESIDE: dict[str, Any] = {
    "writers": {"block_size": MIB, "file_size": 2**28 + 1, "threads": 3, "io_depth": 4, "rate_size": 10**9},
    "readers": {"block_size": 4 * KIB, "file_size": 2**28, "threads": 2, "io_depth": 16, "pattern": "randread"},
}


def site(machine: Caught, raw: Path) -> Site:
    return Site(machine, Path("/d/daqwriter"), DISK, WORK, raw, None)


def lay_out(machine: Caught, raw: Path) -> None:
    fio.lay_out(site(machine, raw).jobs, "some", FileTarget(machine, DISK / "f.bin"), 5_000_000)


def scan(file: str, block: int, name: str, threads: int = 1, **changes: Any) -> Callable[[Caught, Path], Any]:
    own = {**SCAN, **changes}
    return lambda machine, raw: measure_write(site(machine, raw), "fio", file, block, own, name, threads)


def reads(key: Key, suffix: str) -> Callable[[Caught, Path], Any]:
    return lambda machine, raw: read_scan._measure(site(machine, raw), "fio", key, {**SCAN, "ramp_s": 1}, suffix)


def precondition(share: float) -> Callable[[Caught, Path], Any]:
    def run(machine: Caught, raw: Path) -> None:
        target = FileTarget(machine, DISK / "p.bin")
        jobs = JobFiles(machine, WORK, raw)
        conditioner = Conditioner(target, 0, None, "discard", jobs, lambda *_: None, written_share=share)
        conditioner._write(target, 10**9 + 7, "x-precondition", "")

    return run


def steady(scenario: str, logical_bytes: int, name: str) -> Callable[[Caught, Path], Any]:
    def run(machine: Caught, raw: Path) -> None:
        own = load_scenario(LAYOUT.inventory / "scenarios" / f"{scenario}.yml").workloads["steady_state"]
        (test,) = (one for one in steady_tests.tests_of(own, logical_bytes) if one.name == name)
        own = {**own, "span_size": 10**9 + 12345}
        target = FileTarget(machine, DISK / "s.bin")
        _run_round(machine, SteadyPlan(own, 70, target, None, None, JobFiles(machine, WORK, raw)), test, 7)

    return run


def wear(number: int | None, **changes: Any) -> Callable[[Caught, Path], Any]:
    def run(machine: Caught, raw: Path) -> None:
        own = {**WEAR, **changes}
        experiment = WearExperiment("server", "endurance", "", ())
        plan = endurance.Plan(
            own, 1000, FileTarget(machine, DISK / endurance.FILE), JobFiles(machine, WORK, raw), (), 1, experiment
        )
        step = endurance.fill_step(own) if number is None else endurance.mix_step(own, number)
        endurance.write(plan, step, 0 if number is None else number + 1)

    return run


def soak(**changes: Any) -> Callable[[Caught, Path], Any]:
    def run(machine: Caught, raw: Path) -> None:
        demand = Demand(1, 1, 1.0, 1.0, 1.0)
        target = FileTarget(machine, DISK / thermal.FILE)
        plan = SoakPlan({**SOAK, **changes}, demand, target, WORK, raw, [], some_run())
        machine.argv = Load(machine, plan, "fans at 50 %", 120).command()

    return run


def beside(name: str, do: Callable[[Fio], Any]) -> Callable[[Caught, Path], Any]:
    def run(machine: Caught, raw: Path) -> None:
        setting = Setting(Path("/d"), Demand(1, 1, 1.0, 1.0, 1.0), BESIDE, DISK, JobFiles(machine, WORK, raw), 1)
        activity = KINDS[name](setting)
        assert isinstance(activity, Fio)
        machine.argv = do(activity)

    return run


def bench(section: str) -> Callable[[Caught, Path], Any]:
    def run(machine: Caught, raw: Path) -> None:
        file = raw / "overwritten.bin"
        with file.open("wb") as stream:
            stream.truncate(2**29)
        Tools(machine, Path("/d"), DISK).fio(file, 4 * KIB, 4, 4, 0.3, section)

    return run


CASES: dict[str, Callable[[Caught, Path], Any]] = {
    "layout": lay_out,
    "block_scan": scan("block-scan.bin", 64 * KIB, "65536"),
    "block_scan repetition": scan("block-scan.bin", 8 * MIB, "8388608-repetition-3", seconds_per_point=2.5),
    "thread_scan one": scan("thread-scan.bin", 32 * KIB, "32768"),
    "thread_scan ten": scan("thread-scan.bin", 32 * KIB, "32768-10-threads", 10),
    "read_scan sequential": reads(("sequential", 128 * KIB, 8, 1), ""),
    "read_scan random": reads(("random", 4 * KIB, 32, 4), "-repetition-2"),
    "precondition": precondition(2),
    "precondition share": precondition(1.05),
    **{name: steady(where, int(size), test) for name in BEFORE if name.startswith("steady_state ")
       for _, where, size, test in [name.split()]},
    "endurance fill": wear(None),
    "endurance mix": wear(6),
    "endurance 0": wear(2, random_percent=0),
    "endurance 100": wear(2, random_percent=100),
    "thermal": soak(),
    "thermal capped": soak(rate_size=20_000_000),
    **{f"interference {name}": beside(name, lambda one: one.command(7.5, "1-x")) for name in BESIDE},
    **{f"interference {name} layout": beside(name, lambda one: one.lay_out()) for name in BESIDE},
    "bench write libaio": bench("libaio"),
    "bench write io_uring": bench("io_uring"),
    "bench write libaio huge": bench("libaio-huge"),
}  # fmt: skip


def jobs_in(words: Sequence[str]) -> list[Options]:
    """fio's reading of an argument list: each job, with what holds for all of them."""
    everywhere, jobs = Options(), list[Options]()
    for word in words:
        key, _, value = word.removeprefix("--").partition("=")
        key = ALIASES.get(key, key)
        if key == "name" and not (
            jobs and len(jobs[-1]) == len(everywhere) + 1
        ):  # behind a section's name stands the job's own
            jobs.append(dict(everywhere))
        (jobs[-1] if jobs else everywhere)[key] = value
    return jobs


def effective(jobs: list[Options]) -> list[Options]:
    """Without what says nothing: no limit of the rate, and waiting for what runs before the first job."""
    for job in jobs:
        if job.get("rate") == "0":
            del job["rate"]
    jobs[0].pop("stonewall", None)
    return jobs


def shown_by_fio(machine: Caught, folder: Path) -> list[Options]:
    """The options that fio itself reads out of a job file and its values."""
    *words, path = machine.argv
    start = words.index("fio")
    file = folder / Path(path).name
    file.write_text(machine.files.get(path) or Path(path).read_text(encoding="utf-8"), encoding="utf-8")
    sections = [word for word in words if word.startswith("--section=")]
    asked = [*words[:start], "fio", *sections, "--showcmd", str(file)]
    said = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert said.stderr == ""
    return jobs_in(said.stdout.split()[1:])


def caught(name: str, raw: Path) -> Caught:
    machine = Caught()
    with contextlib.suppress(StartedError):
        CASES[name](machine, raw)
    return machine


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_a_job_file_says_to_fio_what_its_arguments_said(tmp_path: Path, name: str) -> None:
    machine, before = caught(name, tmp_path), shlex.split(BEFORE[name])[1:]
    words = machine.argv[machine.argv.index("fio") + 1 :]
    own = [word for word in before if word.startswith(OF_COMMAND)]
    assert set(words) >= set(own)  # fio's own command line, which no job file can say
    asked, shown = jobs_in([word for word in before if word not in own]), shown_by_fio(machine, tmp_path)
    if name.startswith("bench write"):
        for job in (*asked, *shown):  # the job's name goes nowhere
            job["name"], job["filename"] = "", Path(job["filename"]).name
    assert effective(shown) == effective(asked)


def test_each_job_file_is_compared_and_described() -> None:
    files = {file.name for file in LAYOUT.fio_jobs.glob("*.fio")}
    readme = (LAYOUT.fio_jobs / "README.md").read_text(encoding="utf-8")
    assert all(f"- `{name}`: " in readme for name in files)
    assert len(files) == readme.count(".fio`: ") == 10
    ways = {one.partition(" ")[0].replace("_", "-") for one in BEFORE}
    assert ways == {"layout", "block-scan", "thread-scan", "read-scan", "precondition", "steady-state", "endurance", "thermal",
                    "interference", "bench"}  # fmt: skip


def test_the_bench_reads_no_percentile_that_a_job_file_does_not_ask_for() -> None:
    lists = {file.stem: JobFile.named(file.stem).sections() for file in LAYOUT.fio_jobs.glob("*.fio")}
    asked = {
        name: [
            float(one)
            for line in lines
            if line.startswith("percentile_list=")
            for one in line.partition("=")[2].split(":")
        ]
        for name, sections in lists.items()
        for lines in [[line for section in sections.values() for line in section]]
    }
    assert asked["read-scan"] == asked["steady-state"] == list(fio.PERCENTILES)
    assert asked["block-scan"] == asked["thread-scan"] == [50.0, 99.0, 99.9]


LAYOUT_VALUES: dict[str, str | int] = {"TARGET": "/x", "SIZE_BYTES": 4096}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SIZE_BYTES": None}, "layout.fio: SIZE_BYTES has no value. It wants TARGET, SIZE_BYTES"),
        ({"SIZE_BYTE": 1}, "layout.fio: SIZE_BYTE is no variable of it"),
        ({"TARGET": ""}, "layout.fio: TARGET is ''"),
        ({"TARGET": "/a\nrw=randwrite"}, r"layout.fio: TARGET is '/a\\nrw=randwrite'"),
        ({"TARGET": "/dev/shm/a;b"}, "layout.fio: TARGET is '/dev/shm/a;b': fio would read something else"),
        ({"TARGET": "/a #b"}, "layout.fio: TARGET is '/a #b'"),
        ({"TARGET": "/a$ncpus"}, r"layout.fio: TARGET is '/a\$ncpus'"),
        ({"TARGET": "/a "}, "layout.fio: TARGET is '/a '"),
        ({"SIZE_BYTES": "4096\0"}, r"layout.fio: SIZE_BYTES is '4096\\x00'"),
    ],
)
def test_a_value_that_fio_would_leave_out_or_misread_is_refused(change: dict[str, Any], message: str) -> None:
    values = {key: value for key, value in {**LAYOUT_VALUES, **change}.items() if value is not None}
    with pytest.raises(BenchError, match=message):
        JobFile.named("layout").command("/j/layout.fio", values)


def test_a_job_file_that_is_not_there_and_a_section_that_is_none_name_what_there_is() -> None:
    with pytest.raises(BenchError, match=r"fio/nothing\.fio: fio's job file cannot be read .* Complete the checkout"):
        JobFile.named("nothing")
    with pytest.raises(BenchError, match=r"layout\.fio: has no section x\. It has global, layout"):
        JobFile.named("layout").command("/j", LAYOUT_VALUES, ["x"])
    with pytest.raises(BenchError, match=r"steady-state\.fio: its section mixed has no SPLIT"):
        JobFile.named("steady-state").repeated("x", [("a", "mixed", {"SPLIT": "1"})])
    with pytest.raises(BenchError, match="stands before the first section"):
        JobFile("x", "rw=write\n[a]\n").sections()


STRANGE = """a 'b' "c" `id` \\ =% *é&|<(!"""


def test_a_path_of_any_letters_is_the_file_that_fio_writes_also_by_hand(disk: Path) -> None:
    raw, target = disk / "raw", disk / STRANGE / "x.bin"
    raw.mkdir()
    target.parent.mkdir()
    jobs = JobFiles(LocalMachine(), raw, raw)
    jobs.run("layout", "layout-x", FileTarget(LocalMachine(), target), {"SIZE_BYTES": MIB}, 60).check("fio")
    assert target.stat().st_size == MIB
    before = {file.name: file.read_bytes() for file in raw.iterdir()}
    assert before["layout.fio"] == (LAYOUT.fio_jobs / "layout.fio").read_bytes()
    shutil.rmtree(target.parent)
    again = subprocess.run(["sh", raw / "layout-x.sh"], capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["jobs"][0]["write"]["io_bytes"] == target.stat().st_size == MIB
    other = {"TARGET": str(disk / "other.bin"), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", raw / "layout-x.sh"], env=other, capture_output=True, check=True)
    assert (disk / "other.bin").stat().st_size == MIB
    assert {file.name: file.read_bytes() for file in raw.iterdir()} == before


def test_by_hand_the_log_goes_elsewhere_and_the_measurement_is_the_runs(disk: Path, tmp_path: Path) -> None:
    raw = disk / "raw"
    raw.mkdir()
    site = Site(LocalMachine(), Path("daqwriter"), disk, raw, raw, None)
    own = {"file_size": 4 * MIB, "io_depth": 4, "ramp_s": 0, "seconds_per_point": 0.3}
    measure_write(site, "fio", "f", MIB, own, "1048576")
    before = {file.name: file.read_bytes() for file in raw.iterdir()}
    assert set(before) == {"block-scan.fio", "fio-1048576.sh", "fio-1048576.json", "fio-1048576_bw.1.log"}
    own = {"TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    again = subprocess.run(["sh", raw / "fio-1048576.sh"], env=own, capture_output=True, text=True, check=True)
    documents = json.loads(again.stdout), json.loads(before["fio-1048576.json"])
    options = [one["global options"] | one["jobs"][0]["job options"] for one in documents]
    assert options[0].pop("write_bw_log") == str(tmp_path / "fio-1048576")
    assert options[1].pop("write_bw_log") == str(raw / "fio-1048576")
    assert options[0] == options[1]
    assert (tmp_path / "fio-1048576_bw.1.log").exists()
    assert {file.name: file.read_bytes() for file in raw.iterdir()} == before


def test_on_a_whole_drive_the_script_asks_the_guard_as_the_run_does(tmp_path: Path) -> None:
    machine = Caught()
    drive = RawDevice(machine, "SER IAL", Path("/dev/nvme9n1"), True, Path("/opt/daqwriter"))
    jobs = JobFiles(machine, WORK, tmp_path)
    with pytest.raises(StartedError):
        jobs.run("layout", "layout-x", drive, {"SIZE_BYTES": MIB}, 60)
    guard = ["/opt/daqwriter", "guard", "--target=/dev/nvme9n1", "--allow-serial=SER IAL", "--destroy=SER IAL", "--"]
    assert machine.argv[:8] == [*guard, "env", "TARGET=/dev/nvme9n1"]
    text = (tmp_path / "layout-x.sh").read_text(encoding="utf-8")
    words = shlex.split(text.splitlines()[-1])
    assert words == ["exec", *machine.argv[:-1], "layout.fio"]
    assert "TARGET=$" not in text


def test_messages_name_fio_and_not_what_gives_it_its_values() -> None:
    assert program_of(["env", "TARGET=/a", "SIZE_BYTES=1", "fio", "x.fio"]) == "fio"
    assert (program_of(["env"]), program_of(["fio", "a=b"]), program_of(["env", "A=1"])) == ("env", "fio", "env")
    with pytest.raises(BenchError, match=r"^no-such-fio is not there"):
        LocalMachine().run(["env", "A=1", "no-such-fio"], 9)
    with pytest.raises(BenchError, match=r"^sleep did not end within"):
        LocalShell().run(["env", "A=1", "sleep", "9"], 0.1)
