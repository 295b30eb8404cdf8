"""The table of all readers of text that the bench did not write, with texts that each must read. `test_foreign_text` harms them.

A reader that is not in this table is tested nowhere against nonsense: add it here, with the errors that its callers expect."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import bench_smart
from ansible.module_utils.bench_bmc import bios, ipmi
from ansible.module_utils.bench_bmc.errors import BmcError
from ansible.module_utils.bench_cpus import parse_cpus
from ansible.module_utils.bench_storage import devices
from ansible.module_utils.bench_storage.errors import StorageError
from foreign_redfish import DOCUMENTS, seen_of
from ruamel.yaml import YAML

import corpus_trees
from corpus_secrets import redacted
from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.bundle import line_protocol
from daq_bench.bench_model.bundle.files import parse_json
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.documents.tools.daqwriter import Latency
from daq_bench.bench_model.documents.tools.netprobe import Cpu, NetprobeLatency
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.composed import read_requirements, read_scenario
from daq_bench.bench_model.statistics import hdr
from daq_bench.candidate_kit import cpu_model, nand_pages
from daq_bench.candidate_kit.tools import Answer
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.on_candidate.reading import cpu_topology, drive_wear, firmware
from daq_bench.rig.workloads.endurance.step import parse_step
from daq_bench.rig.workloads.shared import fio, write_point
from daq_bench.telemetry_agent.base import line_parser
from daq_bench.telemetry_agent.collectors import memory, network_link, numa, pcie_errors, pressure
from daq_bench.telemetry_agent.collectors.processor import cpu_frequency, interrupts, memory_bandwidth
from daq_bench.telemetry_agent.devices import (
    drive_questions,
    ipmi_text,
    kernel_text,
    nvme_events,
    nvme_pages,
    smartctl_json,
    vendor_pages,
)
from daq_bench.workloads.lan.model import iperf3, perftest, transfers

ROOT = Layout().repository
CORPUS = ROOT / "inventory" / "corpus"
RECORDED = ROOT / "inventory" / "tests" / "recorded"
OURS = Path(__file__).parent / "recorded"
MINIDAQ = json.loads((OURS / "minidaq.json").read_text(encoding="utf-8"))


class Parser(NamedTuple):
    """`read` takes a text, or bytes where the seeds are bytes, and raises nothing but `errors`. `shows`: a seed gives no empty result."""

    name: str
    read: Callable[[Any], Any]
    seeds: tuple[str, ...] | tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = (ValueError,)
    shows: Callable[[Any], bool] = bool
    examples: int = 100  # fewer, and shorter, where one takes long
    long: int = 200_000


def as_bytes(text: str) -> bytes:
    """Also halves of characters, as a broken tool writes them."""
    return text.encode("utf-8", "surrogatepass")


def whole(file: Path) -> str:
    """The file's text."""
    return file.read_text(encoding="utf-8")


def corpus(kind: str) -> tuple[str, ...]:
    """The raw texts of all cases of a kind, but for those that are rightly refused: test_corpus has them."""
    found = [
        case.parent / "raw"
        for case in sorted(CORPUS.glob("*/case.json"))
        if json.loads(whole(case))["kind"] == kind and '"refused"' not in whole(case.parent / "expected.json")
    ]
    assert found, f"the corpus has no case of {kind}"
    return tuple(file.read_text(encoding="utf-8") for file in found)


def smartctl(text: str) -> Any:
    """As the agent reads an answer: what is wrong with a part costs that part."""
    document, faults = drive_questions.decoded(Answer(0, as_bytes(text), b"")), list[str]()
    fault = smartctl_json.answer_fault(document)
    if fault:
        return {"fault": fault}
    found = [
        read(document, faults)
        for read in (smartctl_json.health_fields, smartctl_json.temperatures, smartctl_json.limits)
    ]
    return [*found, smartctl_json.identity(document), faults]


def in_file(read_file: Callable[[Path], Any], name: str) -> Callable[[str], Any]:
    """A reader of files as a reader of texts."""

    def read_text(text: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_bytes(as_bytes(text))
            return read_file(file)

    return read_text


def perf_log(page: bytes) -> Any:
    """The drive's persistent event log, header and events."""
    return nvme_events.events(page, nvme_events.header(page[: nvme_events.HEADER_BYTES]))


def event_log() -> bytes:
    """A composed log of two events (NVMe base specification 2.0, figure 224 and following)."""
    head = bytearray(nvme_events.HEADER_BYTES)
    head[0], head[4:8], head[18:20] = nvme_events.PAGE, (2).to_bytes(4, "little"), (492).to_bytes(2, "little")
    event = bytearray(24)
    event[0], event[2], event[22:24] = nvme_events.HARDWARE, 21, (4).to_bytes(2, "little")
    body = (bytes(event) + b"\x04\x00\x00\x00") * 2
    head[8:16] = (len(head) + len(body)).to_bytes(8, "little")
    return bytes(head) + body


def ocp_page() -> bytes:
    """A composed page that carries the GUID."""
    return bytes(nvme_pages.PAGE_BYTES - 16) + nand_pages.OCP_GUID.to_bytes(16, "little")


VENDORS = YAML(typ="safe").load(ROOT / "ansible/roles/bios/vars/main/vendors.yml")["__bios_vendors"]


def bios_plans(text: str) -> Any:
    """All that the role bios would set of a resource Bios."""
    document = parse_json(as_bytes(text), "Bios")
    attributes = document.get("Attributes") if isinstance(document, dict) else None
    if not isinstance(attributes, dict):
        raise ValueError("no attributes")
    firmware_now = bios.Firmware(attributes, {}, {})
    plans = [
        bios.plan(VENDORS, vendor, setting, asked, firmware_now)
        for vendor in VENDORS
        for setting, asked in (("power_profile", "maximum-performance"), ("cstates", "off"), ("turbo", "on"))
    ]
    bios.resolve_bonds(plans, firmware_now)
    return [[one.unsupported, [wish.value for wish in one.wishes]] for one in plans]


FIO = ((OURS / "fio-2-jobs.json").read_text(encoding="utf-8"), *corpus("fio"))
WRITES = tuple(
    (CORPUS / name / "raw").read_text(encoding="utf-8") for name in ("fio-3-33-randrw", "fio-3-33-write-group")
)
LSBLK = json.dumps(
    {
        "blockdevices": [
            {"name": "sda", "kname": "sda", "path": "/dev/sda", "maj:min": "8:0", "type": "disk", "size": 10**12, "model": "M",
             "serial": "S", "wwn": "0x5", "ro": False, "children": [{"name": "sda1", "kname": "sda1", "path": "/dev/sda1",
             "maj:min": "8:1", "type": "part", "size": 10**9}]}
        ]
    }
)  # fmt: skip
MOUNTS = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/root rw,errors=continue\n25 1 0:22 / / rw shared:1 - tmpfs  rw\n"
# `transfers.transfer` expects this of a flow.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
TRIPS = Latency("round trip", 9, 4.0, 4.0, 4.0, 5.0, 5.0, 9.0, 9.0, 9.0, "ns", "HISTFAAA")
NETPROBE = json.dumps(as_document(NetprobeLatency(
    schema_version=1, tool="netprobe", version="1", status="complete", started_utc="2026-11-20T12:00:00Z", seconds=1.0, warm_up_s=0.0,
    measured_s=1.0, cpu=Cpu(0.1, 0.1), command="latency", message_bytes=64, round_trips=9, segments_sent_again=0, round_trip_us=TRIPS,
)))  # fmt: skip
EVENT = '{"time_utc":"2026-11-20T12:00:00.000Z","kind":"phase","source":"rig","text":"begun"}'
LINES = (
    'cpu,host=a\\ b,core=0 busy=0.5,count=3i,on=true,text="a \\"b\\"" 1795428009447467552',
    'fan,sensor=5"\\ Bay speed_rpm=3000 1',
)

PARSERS: tuple[Parser, ...] = (
    Parser("smartctl", smartctl, corpus("smartctl")),
    Parser(
        "smartctl before and after a run",
        lambda text: bench_smart.entry("/dev/sda", 0, text, ""),
        corpus("smartctl"),
        (),
    ),
    Parser(
        "smartctl --scan",
        lambda text: drive_questions.behind_of(drive_questions.decoded(Answer(0, as_bytes(text), b""))),
        tuple(text for text in corpus("smartctl-scan") if "megaraid" in text),
    ),
    Parser("a case for the corpus", redacted, corpus("smartctl"), examples=30, long=10_000),
    Parser("a case for the corpus, lines", redacted, ("Serial : A123456\nFan1 = 3\n",), long=20_000),
    Parser("smartctl for wear", lambda text: drive_wear.document_of(text), corpus("smartctl"), ()),
    Parser("smartctl for firmware", lambda text: firmware.told(text), corpus("smartctl"), ()),
    Parser("health log", nvme_pages.health_fields, (b"\x00\x2c\x01\x64" + bytes(508), bytes(range(24)) + bytes(488))),
    Parser("health log's temperatures", nvme_pages.temperatures, (b"\x00\x40\x01" + bytes(509),)),
    Parser("identify", nvme_pages.identity, (bytes(4096),)),
    Parser("list of log pages", nvme_pages.supported_pages, (b"\x01" + bytes(1023),)),
    Parser("endurance group log", nvme_pages.endurance_fields, (b"\x01" + bytes(511),)),
    Parser("OCP page", vendor_pages.ocp_fields, (ocp_page(),)),
    Parser(
        "Intel page",
        lambda page: nand_pages.intel_nand_bytes(page, 0),
        (bytes(512),),
        shows=lambda found: found is None,
    ),
    Parser("persistent event log", perf_log, (event_log(),), shows=lambda found: len(found[0]) == 2 and not found[1]),
    Parser("sensors", ipmi_text.parse_sensors, corpus("ipmi-sdr"), shows=lambda found: bool(found[0]) and not found[1]),
    Parser("power", ipmi_text.parse_power, corpus("ipmi-dcmi")),
    Parser(
        "event log of a BMC",
        ipmi_text.parse_log,
        tuple(text for text in corpus("ipmi-sel") if "no entries" not in text),
        shows=lambda found: bool(found[0]),
    ),
    Parser("times of a BMC", ipmi_text.bmc_seconds, ("05/27/2026 10:11:12", "Pre-Init 0000001820", "S+ 00:30:20"), ()),
    Parser(
        "state of a BMC's log",
        ipmi_text.parse_log_state,
        ("Entries          : 12\nFree Space       : 9000 bytes\nLast Add Time    : 11/20/2026 12:00:01\n",),
    ),
    Parser("fans before a command", ipmi.parse_fans, ("Fan1,5000,RPM,ok\nFan2,,,ns\n",), ()),
    Parser(
        "BMC's firmware",
        firmware.bmc_version,
        ("Firmware Revision         : 1.74\nAux Firmware Rev Info     :\n    0x05\n",),
        (),
    ),
    Parser("Redfish service", seen_of, (json.dumps(DOCUMENTS),), (BmcError,)),
    Parser("BIOS attributes", bios_plans, corpus("redfish-bios"), (ValueError, BenchError)),
    Parser(
        "kernel log",
        lambda text: kernel_text.fault_of(kernel_text.parse_message(text)),
        ("6,1234,98765432,-;nvme nvme1: I/O 12 QID 3 timeout, aborting\n SUBSYSTEM=nvme\n",),
    ),
    Parser(
        "tree of /proc and /sys",
        corpus_trees.found_of,
        corpus("node-tree"),
        (ValueError, OSError),
        examples=15,
        long=20_000,
    ),
    Parser(
        "/proc/interrupts",
        interrupts.parse_table,
        ("           CPU0       CPU1\n  8:          0          1   IO-APIC   8-edge      rtc0\n",),
    ),
    Parser("/proc/meminfo", memory.parse_meminfo, (whole(Path("/proc/meminfo")),)),
    Parser("/proc/cpuinfo", cpu_frequency.parse_cpuinfo, ("processor\t: 0\ncpu MHz\t\t: 2400.000\n",)),
    Parser(
        "numastat",
        lambda text: numa.parse_numastat(text, "0"),
        ("numa_hit 5\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 1\nlocal_node 5\nother_node 0\n",),
    ),
    Parser(
        "pressure",
        lambda text: pressure.parse_pressure(text, "io"),
        ("some avg10=0.10 avg60=0.00 avg300=0.00 total=51\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=50\n",),
    ),
    Parser(
        "AER counters",
        lambda text: pcie_errors.parse_errors(text, "correctable", "0000:01:00.0"),
        ("RxErr 0\nBadTLP 2\nTOTAL_ERR_COR 2\n",),
    ),
    Parser(
        "ethtool -S",
        lambda text: network_link.parse_statistics(text, "eth0"),
        ("NIC statistics:\n     rx_out_of_buffer: 3\n     rx_crc_errors_phy: 0\n",),
    ),
    Parser(
        "perf stat",
        memory_bandwidth.parse_perf,
        (
            "S0,1,100.5,MiB,uncore_imc/cas_count_read/,1,100.0,,\nS0,1,100.5,MiB,uncore_imc/cas_count_write/,1,100.0,,\nS0,1,1000000000,ns,duration_time,1,100.0,,\n",
        ),
    ),
    Parser("line protocol, agent", line_parser.parse_line, LINES),
    Parser("line protocol, bundle", line_protocol.parse_line, LINES),
    Parser(
        "fio of a block scan",
        lambda text: write_point.parse_point(text, 4096, 1.0, "", None),
        WRITES[:1],
        (BenchError,),
    ),
    Parser("fio of an endurance step", lambda text: parse_step(text, "step 1"), WRITES, (BenchError,)),
    Parser(
        "fio",
        lambda text: [fio.direction(job, way) for job in fio.jobs_of(text, "a scan") for way in ("read", "write")],
        FIO,
        (BenchError,),
    ),
    Parser("iperf3", iperf3.parse, (*corpus("iperf3"), whole(RECORDED / "iperf3.json"))),
    Parser(
        "perftest's bandwidth",
        lambda text: perftest.parse_bandwidth(text, 65536),
        (whole(RECORDED / "ib_write_bw.txt"),),
    ),
    Parser("perftest's latency", lambda text: perftest.parse_latency(text, 64), (whole(RECORDED / "ib_read_lat.txt"),)),
    Parser(
        "netprobe",
        lambda text: transfers._measured(transfers.PROBE_LATENCY, {"tool": "netprobe"}, text, 64),
        (NETPROBE,),
        (*UNREADABLE, BenchError),
    ),
    Parser("lsblk, guard", devices.parse_lsblk, (LSBLK, *corpus("lsblk")), (StorageError,)),
    Parser(
        "wipefs, guard",
        devices.parse_wipefs,
        corpus("wipefs"),
        (StorageError,),
        shows=lambda found: isinstance(found, list),
    ),
    Parser(
        "mountinfo",
        devices.parse_mountinfo,
        (MOUNTS,),
        (StorageError,),
        shows=lambda found: len(found) == 2 and found[1].options == ("rw",),
    ),
    Parser("swaps", devices.parse_swaps, ("Filename\tType\tSize\n/dev/sda2 partition 1 0 -2\n",), ()),
    Parser("fstab", devices.parse_fstab, ("# a\nUUID=1 / ext4 defaults 0 1\n",), ()),
    Parser("CPU list", parse_cpus, ("0-3,8",)),
    Parser("CPU list of the kernel", cpu_topology.parse_list, ("0-3,8",)),
    Parser("/proc/cpuinfo's model", cpu_model.cpu_model, ("model name : X\n",), ()),
    Parser(
        "inventory",
        in_file(lambda file: load_candidate(file, "this-machine"), "lab.yml"),
        (whole(ROOT / "inventory/lab.yml"),),
        (ProfileError,),
        examples=50,
        long=20_000,
    ),
    Parser(
        "requirement",
        in_file(read_requirements, "own.yml"),
        (whole(ROOT / "inventory/requirements/thermal.yml"),),
        (ProfileError,),
        long=20_000,
    ),
    Parser(
        "scenario",
        in_file(read_scenario, "own.yml"),
        (whole(ROOT / "inventory/scenarios/thread-scan.yml"),),
        (ProfileError,),
        long=20_000,
    ),
    Parser("document of a bundle", lambda text: parse_json(as_bytes(text), "run.json"), (EVENT,), (BenchError,)),
    Parser(
        "event of a bundle",
        lambda text: read(parse_json(as_bytes(text), "events.jsonl"), Event, "events.jsonl"),
        (EVENT,),
        (BenchError,),
    ),
    Parser("histogram", hdr.decode, (MINIDAQ["latency_us"]["hdr"],)),
)
