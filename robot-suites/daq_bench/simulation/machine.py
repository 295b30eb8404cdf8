"""The modelled server behind the interface by which the bench reaches a candidate: commands, questions, files. It runs no program."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.machine import CALL_S_MAX, PROGRAMS, STATE, Machine, Places
from daq_bench.rig.on_candidate.reading.firmware import part
from daq_bench.simulation.physics.drawing import Group
from daq_bench.simulation.physics.drive import DriveSpec
from daq_bench.simulation.physics.server import CPUS, Server
from daq_bench.simulation.tools import daqwriter, fio, smartctl

DIRECTORY = Path("/srv/daq-bench/array")
TARGETS = DIRECTORY.parent  # of the sets of a comparison, by their names
GONE = {
    "network_cut": "ssh: connection to simulated lost: Connection timed out",
    "power_cut": "ssh: connection to simulated lost: Connection reset by peer",
}
FREE_SHARE = {
    "xfs": 0.985,
    "ext4": 0.93,
}  # of the capacity, once it is made; ext4 keeps a twentieth for root, and its inodes
CPU, HOSTNAME = "SIM EPYC 7302 16-Core Processor", "simulated"
START_S = 0.3  # of a tool
MD_S_PER_GB = 0.15  # ~ CPU time of md's thread of RAID 5 for each GB
OBSERVED = ("a rest", "the hazards that were commanded")
HANDSHAKE_S_MAX = 600.0  # real time between the thread of a load and the one that looks on


class SimulatedMachine(Machine):
    """`workload_file`: the bundle's, where daqwriter's records go; set when the run has a bundle."""

    is_local = False
    from_record = True  # nobody's drives are worn: an account of them lies in the bundle alone

    def __init__(self, server: Server) -> None:
        self.server = server
        self.workload_file: Path | None = None
        self._files: dict[str, str] = {}
        self._records: list[str] = []
        self._record: daqwriter.Stored | None = None
        self._block = 0
        self._load: fio.Soak | None = None  # the one under way
        self._begun = threading.Event()  # a load is under way, or could not be started
        self.soaks: dict[str, int] = {}  # bytes that each load wrote, by its name

    # A workload asks for these

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = [str(word) for word in argv]
        if "trigger-file" in daqwriter.options_of(words):
            return self._soaked(words)
        self._demand_reachable()
        tool = f"_{Path(words[0]).name}"
        if not hasattr(self, tool):
            return Completed(tuple(words), 127, "", f"{words[0]}: command not found")
        status, out, said = getattr(self, tool)(words)
        self._demand_reachable()
        if self._load is None:  # beside a load a tool takes no time
            self.server.idle(START_S)
        return Completed(tuple(words), status, out, said)

    # A load that goes on while somebody looks on: its thread waits, and the one that looks on lets the time pass

    def _soaked(self, words: list[str]) -> Completed:
        try:
            self._demand_reachable()
            load = self._load = fio.Soak(self.server, fio.asked(words, self._files))
        finally:
            self._begun.set()
        if not load.ended.wait(HANDSHAKE_S_MAX):
            raise BenchError("the modelled load was left alone")
        if load.lost:
            raise load.lost
        return Completed(tuple(words), *load.answer())

    def wait(self, seconds: float) -> None:
        load = self._load
        if load is None:
            self.server.idle(seconds)
            return
        for _ in range(round(seconds)):
            goes_on = load.second()
            try:
                self._demand_reachable()
            except BenchError as error:
                load.lost, goes_on = error, False
            if not goes_on:
                self._end_load()
                return

    def stopwatch_s(self) -> float:
        return self.server.now_s

    def _end_load(self) -> None:
        load, self._load = self._load, None
        if load is not None:
            self._begun.clear()
            self.server.end_record()
            self._files[f"{load.log_stem}_bw.1.log"] = load.log
            self.soaks[load.told["name"]] = load.bytes_written
            load.ended.set()
            load.thread.join(HANDSHAKE_S_MAX)

    def _touch(self, words: list[str]) -> tuple[int, str, str]:
        if self._load is not None and words[-1] == self._load.trigger:
            self._end_load()
        return 0, "", ""

    def _date(self, words: list[str]) -> tuple[int, str, str]:
        return 0, f"{self.server.clock_s:.9f}\n", ""

    def _demand_reachable(self) -> None:
        """Raises BenchError where the candidate cannot be reached any more."""
        for kind, text in GONE.items():
            if self.server.has_struck(kind):
                self.server.harms[kind] = text
                raise BenchError(text)

    def _daqwriter(self, words: list[str]) -> tuple[int, str, str]:
        if words[1] == "guard":  # it lets every command pass: the drive is the one that was bought for this
            inner = words[words.index("--") + 1 :]
            answer: tuple[int, str, str] = getattr(self, f"_{Path(inner[0]).name}")(inner)
            return answer
        status, said = self._wrote(words)
        if self.workload_file is not None:
            with self.workload_file.open("a", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in self._records))
        self._records.clear()
        return (status, said, "") if words[1] == "--version" else (status, "", said)

    def _wrote(self, words: list[str]) -> tuple[int, str]:
        """Exit status and words of one daqwriter."""
        document: dict[str, Any] | None
        if words[1] == "--version":
            return 0, daqwriter.VERSION
        if "--dry-run" in words:
            return 0, ""
        self.server.aim_at(self._group_at(Path(daqwriter.options_of(words)["target"])))
        if words[1] == "write":
            document, status, said = daqwriter.write(self.server, words)
        elif words[1] == "minidaq":
            recording = daqwriter.Recording(self.server, words, self._records.append)
            recording.run()
            self._note_losses(recording)
            document, self._record = recording.result()
            self._block = recording.block
            daqwriter.damage(self.server, self._record, self._block)
            self._count(recording, self._record)
            status, said = (daqwriter.FAILED, f"daqwriter: {recording.error}") if recording.error else (0, "")
        else:
            document, status, said = daqwriter.verify(self.server, self._record, words, self._records.append)
        if document is not None:
            self._files[daqwriter.options_of(words)["json"]] = json.dumps(document)
        return status, said

    def _count(self, recording: daqwriter.Recording, kept: daqwriter.Stored) -> None:
        offered = kept.superchunks + kept.lost + recording.abandoned
        damaged = 0 if recording.error else sum(kept.damage.values())  # of a drive that failed nothing is read back
        counts = (offered, kept.superchunks, kept.lost, damaged)
        self.server.counted[self.server.records_made] = counts

    def _note_losses(self, recording: daqwriter.Recording) -> None:
        harms, number = self.server.harms, self.server.records_made
        if recording.lost >= 1:
            harms["lost"] = f"record {number} lost superchunks: the array did not keep the demand's pace"
        if recording.episodes:
            harms["busy"] = f"the rings were over their high watermark in record {number}"
        due = recording.demand * recording.duration_s
        self.server.not_offered_share = max(self.server.not_offered_share, recording.not_offered / due)
        self.server.most_owed = max(self.server.most_owed, recording.most_owed)

    def _sh(self, words: list[str]) -> tuple[int, str, str]:
        """Only Machine.put asks for a shell."""
        *_, path, text = words
        self._files[path] = text
        return 0, "", ""

    def _fio(self, words: list[str]) -> tuple[int, str, str]:
        return 0, f"{fio.VERSION}\n", ""

    def _env(self, words: list[str]) -> tuple[int, str, str]:
        """fio, with the values of its job file."""
        jobs = fio.jobs_of(words, self._files)
        if self.server.is_steady_state and "runtime" in jobs[0]:
            return fio.points(self.server, jobs)
        if self.server.wears and "io_size" in jobs[0]:
            return fio.step(self.server, jobs)
        (told,) = jobs
        out, log = fio.run(self.server, told)
        if target := told.get("write_bw_log"):
            self._files[f"{target}_bw.1.log"] = log
        return 0, out, ""

    def _findmnt(self, words: list[str]) -> tuple[int, str, str]:
        return 0, f"{DIRECTORY}\n", ""

    def _df(self, words: list[str]) -> tuple[int, str, str]:
        return (
            0,
            f"   Used      Avail\n{self.server.spec.capacity_of(self.server.group) // 1000} {self._free_bytes()}\n",
            "",
        )

    def _free_bytes(self) -> int:
        """Returns B that a file system just made lets one write."""
        spec = self.server.spec
        size = spec.capacity_of(self.server.group)
        return size if spec.raw else int(FREE_SHARE[spec.filesystem] * size)

    def _group_at(self, path: Path) -> Group:
        """The target that a path lies on."""
        sets = (one for one in self.server.spec.sets if path.is_relative_to(TARGETS / one.name))
        return next(sets, self.server.spec.own)

    def build(self, directory: Path) -> None:
        """A set is made of its drives, which are emptied before."""
        self.server.aim_at(self._group_at(directory))
        for drive in self.server.loaded:
            drive.purge()

    def _fstrim(self, words: list[str]) -> tuple[int, str, str]:
        if not self.server.spec.discards:
            return 1, "", f"fstrim: {DIRECTORY}: the discard operation is not supported\n"
        size = self._purge()
        return 0, f"{DIRECTORY}: {size / 2**30:.1f} GiB ({size} bytes) trimmed\n", ""

    def _purge(self) -> int:
        size = self._free_bytes()
        for drive in self.server.loaded:
            drive.purge()
        self.server.scattered_bytes = 0.0
        self.server.array_discarded += size
        return size

    def _python3(self, words: list[str]) -> tuple[int, str, str]:
        """The only program that a load starts there by itself: `raw_device purge SERIAL PATH METHOD`, through the guard."""
        tools = {"discard": "BLKDISCARD", "format": "nvme format"}
        if words[1] != "-c" or words[3] != "purge" or words[6] not in tools:
            raise BenchError(f"the modelled server knows no such program: {words[3:]}")
        size = self._purge()
        told = {"tool": tools[words[6]], "size_bytes": size, "zero_share": self.server.spec.zero_share, "samples": 64}
        return 0, json.dumps({"result": told}), ""

    def _blockdev(self, words: list[str]) -> tuple[int, str, str]:
        return 0, f"{self.server.spec.capacity_bytes}\n", ""

    def call(self, program: str, *arguments: str | Path, timeout_s: float = CALL_S_MAX) -> Any:
        self._demand_reachable()
        if program == "probe":
            self.server.aim_at(self._group_at(Path(arguments[0])) if arguments else self.server.spec.own)
            return self._probe()
        if program == "scratch":
            return {}
        if program == "load_counters":
            return self._load_counters([str(one) for one in arguments])
        if program == "firmware":
            return self._firmware()
        if program == "drive_wear":
            return self._wear()
        if program == "disk_counters" and arguments == (self.server.array_name,):
            return self._counters()
        raise BenchError(f"the modelled server knows no program {program!r}")

    def observe(self, what: str, make: Callable[[], Any]) -> Any:
        """The time is the model's; a cost is counted from telemetry that is not written yet."""
        if what == "the time":
            return datetime.fromtimestamp(int(self.server.now_s), UTC).isoformat(timespec="seconds")
        if what == "the clock":
            return self.server.now_s
        if what == "the cost so far":
            return {"hours": 0.0, "written_bytes": None, "energy_kwh": None}
        if what in ("the drives' locks", "the account before"):
            return None  # nobody else has these drives, or wore them before
        if what.startswith("what ended ") and not self._begun.wait(HANDSHAKE_S_MAX):
            raise BenchError("the modelled load did not begin")
        if what.startswith(("what ended ", "target ")) or what.endswith(" asked to end") or what in OBSERVED:
            return make()
        raise BenchError(f"the modelled server cannot observe {what!r}")

    def places(self, candidate: str, bundle: Path) -> Places:
        run = STATE / "runs" / bundle.name
        return Places(programs=PROGRAMS, state=STATE / "state", raw=run / "raw", telemetry=run / "telemetry")

    def _wear(self) -> dict[str, Any]:
        """Answers as on_candidate.reading.drive_wear does of the drives that are there."""
        drives = []
        for drive in self.server.drives:
            nvme = drive.spec.transport == "nvme"
            step = smartctl.UNIT_BYTES if nvme else 10**6
            drives.append({
                "name": drive.spec.name, "counter": "nvme" if nvme else "scsi", "step_bytes": step,
                "written_bytes": -(-int(drive.written_bytes) // step) * step, "nand_bytes": None, "nand_step_bytes": None,
                "nand_source": None, "percentage_used": drive.percentage_used, "available_spare": 100 if nvme else None,
                "available_spare_threshold": 10 if nvme else None, "media_errors": 0, "power_cycles": 23 if nvme else None,
                "unsafe_shutdowns": 2 if nvme else None,
            })  # fmt: skip
        return {"boot_id": "5d1f0f0e-0000-4000-8000-000000000001", "drives": drives}

    def read_text(self, path: Path) -> str:
        self._demand_reachable()
        if str(path) == f"/sys/block/{self.server.array_name}/stat":
            return f" {' '.join(map(str, self._counters()))}\n"
        if str(path) == f"/sys/block/{self.server.array_name}/queue/logical_block_size":
            return "512\n"
        raise BenchError(f"{path}: No such file or directory")

    def _load_counters(self, words: list[str]) -> dict[str, Any]:
        """Answers as on_candidate.reading.load_counters does."""
        server, names = self.server, words[2:] if words[:1] == ["--array"] else words
        by_name = {one.spec.name: one for one in server.drives}
        written = sum(server.written_to.values())
        kernel_s = server.busy_s / 2
        return {
            "clock_s": server.clock_s,
            "kernel_cpu_s": kernel_s,
            "total_cpu_s": server.busy_s + server.others.cpu_s,
            "md_threads_s": {"md0_raid5": MD_S_PER_GB * written / 1e9} if server.group.level == 5 else {},
            "written_bytes": {name: int(by_name[name].written_bytes) // 512 * 512 for name in names},
        }

    def _counters(self) -> list[int]:
        """The fields of the array's /sys/block/NAME/stat."""
        sectors = int(self.server.array_written) // 512
        discarded = int(self.server.array_discarded) // 512
        return [0, 0, 0, 0, sectors // 2048, 0, sectors, *(0,) * 6, discarded, 0]

    def fetch(self, path: Path, local: Path) -> None:
        self._demand_reachable()
        if str(path) not in self._files:
            raise BenchError(f"{path}: No such file or directory")
        local.write_text(self._files[str(path)], encoding="utf-8")

    def remove(self, path: Path) -> None:
        """Gone at once: a record has no name in the model."""

    def run_from_here(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        return self.run(argv, timeout_s)

    def _python(self) -> list[str]:
        return ["python3"]

    # The candidate's account of itself

    def _probe(self) -> dict[str, Any]:
        nodes = [self._node(number) for number in range(len(self.server.drives))]
        array, name, group = self._array(), self.server.array_name, self.server.group
        extra = (
            []
            if len(group.drives) == 1
            else [{**nodes[0], "name": name, "kname": name, "path": f"/dev/{name}", "type": group.array}]
        )
        extra = [{**one, "description": array} for one in extra]
        return {
            "host": {
                "hostname": HOSTNAME, "kernel": "6.1.0-sim", "os": "Debian GNU/Linux 12 (bookworm)", "architecture": "x86_64",
                "cpu_model": CPU, "cpus": CPUS, "memory_bytes": self.server.spec.memory_bytes, "numa_nodes": 2,
            },
            "devices": [*nodes, *extra],
            "target": {
                "filesystem": None if self.server.spec.raw else self.server.spec.filesystem,
                "free_bytes": self._free_bytes(),
                "device": array,
            },
            "clock_s": self.server.clock_s,
        }  # fmt: skip

    def _node(self, number: int) -> dict[str, Any]:
        description = self._described(self.told(number))
        name = description["name"]
        return {
            "name": name,
            "kname": name,
            "path": f"/dev/{name}",
            "type": "disk",
            "pkname": None,
            "description": description,
        }

    def told(self, number: int) -> DriveSpec:
        """The drive as it presents itself now, which need not be the one that was declared."""
        spec, server = self.server.drives[number].spec, self.server
        for kind in ("swapped_drive", "swapped_after_preflight", "counterfeit_serial"):
            hazard = server.spec.has(kind)
            if (
                hazard is None
                or hazard.drive != number
                or (kind == "swapped_after_preflight" and not server.provisioned)
            ):
                continue
            server.note(kind)
            server.harms[kind] = f"{spec.name} is not the declared drive"
            if kind == "counterfeit_serial":
                return replace(spec, model="NOSUCH SSD")
            return replace(spec, serial=f"{spec.serial[:-1]}Z")
        return spec

    @staticmethod
    def _described(spec: DriveSpec) -> dict[str, Any]:
        return {
            "name": spec.name, "model": spec.model, "serial": spec.serial, "firmware": spec.firmware, "wwn": spec.wwn,
            "size_bytes": spec.size_bytes, "numa_node": 0, "rotational": False, "transport": spec.transport,
            "pcie_link": spec.link or None, "raid_level": None, "members": [],
        }  # fmt: skip

    def _array(self) -> dict[str, Any]:
        group = self.server.group
        if len(group.drives) == 1:
            return self._described(self.told(group.drives[0]))
        return {
            "name": self.server.array_name, "model": None, "serial": None, "firmware": None, "wwn": None,
            "size_bytes": self.server.spec.capacity_of(group), "numa_node": None, "rotational": False, "transport": None,
            "pcie_link": None, "raid_level": group.array, "members": self._members(),
        }  # fmt: skip

    def _members(self) -> list[str]:
        server = self.server
        if not server.spec.has("members_unknown"):
            return [one.spec.name for one in server.loaded]
        server.note("members_unknown")
        server.harms["members_unknown"] = "which drives carry the target is not known"
        return []

    def _firmware(self) -> list[dict[str, Any]]:
        parts = []
        for number, drive in enumerate(self.server.drives):
            if not drive.present:
                continue
            spec, version = self.told(number), drive.spec.firmware
            changed = self.server.spec.has("firmware_changed")
            if changed and changed.drive == number and self.server.records_made:
                self.server.note("firmware_changed")
                self.server.harms["firmware_changed"] = f"the firmware of {spec.name} changed during the run"
                version = f"{version}B"
            parts.append(part("drive", spec.serial, version, "smartctl"))
        return [*parts, part("bios", "system", "SIM 2.4 01/02/2026", "dmi"), part("bmc", "system", "1.73", "ipmitool")]
