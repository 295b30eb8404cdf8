"""Host collectors that ask a program, or take part of their points at another pace."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from agent_helpers import by_tag, fake_program
from recorded_tree import Clock, remove, sample, unpack, write

from daq_bench.telemetry_agent.collectors.network_link import NetworkLink, parse_statistics
from daq_bench.telemetry_agent.collectors.processor.cpu import Cpu
from daq_bench.telemetry_agent.collectors.processor.interrupts import Interrupts, cpus_of
from daq_bench.telemetry_agent.collectors.processor.memory_bandwidth import MemoryBandwidth, parse_perf
from daq_bench.telemetry_agent.reading.collector import Unsupported

NVME0 = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"


def test_the_cores_come_once_a_second_and_the_total_at_every_tick(root: Path, clock: Clock) -> None:
    """One tick in a second has the cores, whatever the period of the samples."""
    collector, previous, seen = Cpu(0.1, root), None, []
    for tick in range(25):
        text = (root / "proc/stat").read_text()
        first, _, rest = text.partition("\ncpu0 ")
        columns = rest.split("\n", 1)
        ticks = columns[0].split()
        ticks[0] = str(int(ticks[0]) + 10)
        total = first.split()
        total[1] = str(int(total[1]) + 10)
        write(root / "proc/stat", " ".join(total) + "\ncpu0 " + " ".join(ticks) + "\n" + columns[1])
        previous, points = sample(collector, previous)
        seen += [(tick, dict(point.tags)["core"], point.fields["user_fraction"]) for point in points]
        clock.advance(0.1)
    assert [tick for tick, core, _ in seen if core == "total"] == list(range(1, 25))
    assert [(tick, core) for tick, core, _ in seen if core != "total"] == [(10, "0"), (20, "0")]
    assert {share for _, _, share in seen} == {1.0}


def test_a_large_machine_gives_few_series_and_its_whole_remote_share(tmp_path: Path, clock: Clock) -> None:
    """One drive, 128 CPUs, 128 vectors, each of them busy: one point, which names the 8 busiest; the share is of all."""
    root = unpack("healthy_0", tmp_path)
    folder = root / NVME0 / "msi_irqs"
    remove(folder)
    for vector in range(100, 228):
        write(folder / str(vector), "msix\n")
    write(root / "sys/devices/system/node/node0/cpulist", "0-31,64-95\n")
    collector, previous = Interrupts(0.1, root), None
    for step in (0, 1):
        rows = [" " * 5 + "".join(f"CPU{cpu:<8}" for cpu in range(128))]
        for at in range(128):
            counts = [7 + step * (cpu + 1) if cpu == at else 0 for cpu in range(128)]
            rows.append(f"{100 + at}: " + " ".join(map(str, counts)) + f" PCI-MSIX {at}-edge nvme0q{at}")
        write(root / "proc/interrupts", "\n".join(rows) + "\n")
        previous, points = sample(collector, previous)
        clock.advance(1.0)
    (point,) = [p for p in points if dict(p.tags)["device"] == "nvme0n1"]
    assert dict(point.tags)["core"] == "total"
    remote = [cpu for cpu in range(128) if not (cpu < 32 or 64 <= cpu < 96)]
    assert point.fields == {
        "cores": 128,
        "vectors": 128,
        "interrupts_per_s": sum(range(1, 129)),
        "remote_fraction": sum(cpu + 1 for cpu in remote) / sum(range(1, 129)),
        "busiest_core": 127,
        "busiest_core_interrupts_per_s": 128.0,
        "busiest_core_remote": True,
        "busiest_cores": "127=128 126=127 125=126 124=125 123=124 122=123 121=122 120=121",
    }


def test_without_a_numa_node_nothing_is_called_remote(root: Path, clock: Clock) -> None:
    """A device of a virtual machine says -1."""
    write(root / NVME0 / "numa_node", "-1\n")
    collector = Interrupts(1.0, root)
    before, _ = sample(collector)
    unpack("healthy_1", root)
    clock.advance()
    _, points = sample(collector, before)
    mine = [p.fields for p in points if dict(p.tags)["device"] == "nvme0n1"]
    assert len(mine) == 1 and not {"busiest_core_remote", "remote_fraction"} & mine[0].keys()
    assert mine[0]["busiest_cores"]
    assert cpus_of("0-1,4") == {"0", "1", "4"} and cpus_of("") == frozenset()


def test_ethtool_that_is_missing_or_has_nothing_is_told_of_once(
    root: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The links are reported all the same."""
    real = os.environ["PATH"]
    fake_program(Path(real.partition(":")[0]), "ethtool", "echo 'no stats available' >&2; exit 94\n")
    for program, words in (("ethtool", "no stats available"), ("none", "not installed")):
        collector = NetworkLink(1.0, root)
        if program == "none":
            monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
        faults = []
        for _ in range(3):
            reading, points = sample(collector)
            faults.append(reading.faults)
            assert len(points) == 3
            clock.advance()
        assert words in faults[0][0] and faults[1:] == [(), ()]


def test_ethtool_that_hangs_or_talks_nonsense_is_a_failure_with_its_words(root: Path) -> None:
    """Bounded by its timeout."""
    programs = Path(os.environ["PATH"].partition(":")[0])
    fake_program(programs, "ethtool", "exec sleep 20\n")
    assert NetworkLink(1.0, root, timeout_s=0.2).read().faults == ("ethtool -S ens2f0np0: no answer within 0.2 s",)
    for text, complaint in (("", "not understood: ''"), ("NIC statistics:\n     rx_pause: -3\n", "rx_pause: .*'-3'")):
        with pytest.raises(ValueError, match=complaint):
            parse_statistics(text, "ens2f0np0")


PERF_OUTPUT = """S0,12,15258.79,MiB,uncore_imc/cas_count_read/,12001000000,100.00,,
S1,12,7629.39,MiB,uncore_imc/cas_count_read/,12001000000,100.00,,
S0,12,3814.70,MiB,uncore_imc/cas_count_write/,12001000000,100.00,,
S1,12,0.00,MiB,uncore_imc/cas_count_write/,12001000000,100.00,,
S0,1,2000000000,ns,duration_time,2000000000,100.00,,
"""


def test_memory_bandwidth_by_perf_where_resctrl_is_not_mounted(root: Path) -> None:
    """8 GB/s read of socket 0; a refusal is told in perf's own words."""
    remove(root / "sys/fs/resctrl")
    with pytest.raises(Unsupported, match="mount resctrl"):
        MemoryBandwidth(1.0, root).read()
    write(root / "sys/bus/event_source/devices/uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03\n")
    programs = Path(os.environ["PATH"].partition(":")[0])
    write(programs / "sample.csv", PERF_OUTPUT)
    fake_program(programs, "perf", f"[ \"$1 $4\" = 'stat -x,' ] && exec cat {programs}/sample.csv\n")
    sockets = by_tag(sample(MemoryBandwidth(1.0, root))[1], "domain")
    assert sockets["socket-0"] == pytest.approx({"read_bytes_per_s": 8e9, "written_bytes_per_s": 2e9}, rel=1e-5)
    assert sockets["socket-1"] == pytest.approx({"read_bytes_per_s": 4e9, "written_bytes_per_s": 0.0}, rel=1e-5)
    fake_program(programs, "perf", "echo 'Access to performance monitoring is limited' >&2; exit 255\n")
    with pytest.raises(Unsupported, match=r"perf stat: 'Access to performance monitoring is limited'.*wants root"):
        MemoryBandwidth(1.0, root).read()
    write(programs / "sample.csv", PERF_OUTPUT.replace("15258.79,MiB", "<not supported>,"))
    fake_program(programs, "perf", f"exec cat {programs}/sample.csv\n")
    with pytest.raises(Unsupported, match="S0,12,<not supported>"):
        MemoryBandwidth(1.0, root).read()


def test_memory_counters_that_are_assigned_to_nobody_are_unsupported_and_unavailable_ones_a_failure(root: Path) -> None:
    """The first is how the machine is set up, the second may be otherwise at the next reading."""
    for word, error in (("Unassigned", Unsupported), ("Unavailable", OSError)):
        for file in (root / "sys/fs/resctrl").rglob("mbm_*_bytes"):
            write(file, word + "\n")
        with pytest.raises(error, match=f"mbm_total_bytes: the kernel says {word}"):
            MemoryBandwidth(1.0, root).read()


@pytest.mark.parametrize(
    ("good", "bad", "complaint"),
    [
        (PERF_OUTPUT, "", "no memory traffic"),
        ("15258.79,MiB", "<not supported>,", "no count in MiB in 'S0,12,<not supported>"),
        ("15258.79,MiB", "15258.79,", "no count in MiB"),
        ("2000000000,ns", "<not counted>,ns", "no count in MiB"),
        ("S1,12,0.00", "Error: no access", "not understood: 'Error"),
        ("S0,1,2000000000,ns,duration_time", "S0,1,0,ns,duration_time", "no memory traffic, or no duration"),
    ],
)
def test_output_of_perf_that_is_not_understood_is_an_error(good: str, bad: str, complaint: str) -> None:
    """Never a rate of zero."""
    with pytest.raises(ValueError, match=complaint):
        parse_perf(PERF_OUTPUT.replace(good, bad))
