"""A candidate whose every sample is known, and what the boards' graphs draw of it: by hand, from the lines below alone.

Each series has two samples a quarter of a second apart, which one interval takes together, and later two more: so a graph that takes the
mean, the highest or the lowest value of an interval shows another line each."""

from __future__ import annotations

from dataclasses import dataclass

from board_scene import COMPARE, DAY_S, DRIVE_HEALTH, FLEET, HOUR_S, RUN_LIVE, SECOND_NS, Dashboard

from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_model.behaviour.aligned import EPOCH_NS

FLOW = "host=flow,run=f1"
QUARTER_S = 0.25
GB = 10**9
EARLY_S, LATE_S = 300, 60
DAYS_S = 2 * DAY_S
AGENT_S = (EARLY_S, 180)  # too long ago for a run that runs now
Four = tuple[float, float, float, float]


def compared_lines() -> str:
    """Two runs laid over each other (run a1 and c1 of the scene), with two samples in each of two seconds."""
    found = []
    for run, factor, backlog, shares in (("a1", 1, 2.5e8, (0.125, 0.375)), ("c1", 4, 5e8, (0.0625, 0.1875))):
        for nth, second in enumerate((0, QUARTER_S, 1, 1 + QUARTER_S)):
            fields: dict[str, Four] = {
                "power_w": (300, 500, 600, 800),
                "nvme0n1_written_bytes_per_s": (1e9, 2e9, 3e9, 1e9),
                "nvme0n1_write_latency_s": (1e-4, 3e-4, 2e-3, 4e-3),
                "nvme0n1_temperature_degc": (10, 12, 15, 14),
            }
            told = [f"{name}={four[nth] * factor}" for name, four in fields.items()]
            if second % 1:  # the scene has the whole seconds' own
                told += [f"backlog_bytes={backlog}", f"system_fraction={shares[nth // 2]}"]
            at_ns = EPOCH_NS + int(second * SECOND_NS)
            found.append(f'aligned_run,host=h,run={run} load="record 1",{",".join(told)} {at_ns}')
    return "\n".join(found) + "\n"


def flow_lines(now_ns: int) -> str:
    found, declared = [], Declared.load()

    def put(age_s: float, series: str, fields: str) -> None:
        name, _, tags = series.partition(",")
        found.append(f"{name},{FLOW}{',' if tags else ''}{tags} {fields} {now_ns - int(age_s * SECOND_NS)}")

    def mark(series: str, name: str) -> str:
        return "i" if declared.measurements[series.partition(",")[0]].fields[name] == "integer" else ""

    def four(series: str, ages: tuple[float, float] = (EARLY_S, LATE_S), /, **fields: Four) -> None:
        places = [age - later for age in ages for later in (0, QUARTER_S)]
        for nth, age_s in enumerate(places):
            put(age_s, series, ",".join(f"{name}={four[nth]}{mark(series, name)}" for name, four in fields.items()))

    for age_s, offered, stored, read in (
        (120, 0, 0, 0),
        (60, 180_000_000_000, 120_000_000_000, 60_000_000_000),
        (60 - QUARTER_S, 181_250_000_000, 121_000_000_000, 60_750_000_000),
        (0, 241_000_000_000, 240_500_000_000, 90_625_000_000),
    ):
        put(age_s, "daqwriter", f"offered_bytes={offered}i,stored_bytes={stored}i,read_bytes={read}i")
    for age_s, gigabytes in (
        (180, 900),
        (120, 960),
        (60, 30),
        (0, 150),
    ):  # a counter that begins again with each record
        at_ns = now_ns - age_s * SECOND_NS
        found.append(f"daqwriter,host=again,run=n1 offered_bytes={gigabytes * GB}i {at_ns}")
    four("block_device,device=nvme0n1", written_bytes_per_s=(1e9, 2e9, 3e9, 1e9), write_latency_s=(1e-4, 3e-4, 2e-3, 4e-3),
         queue_depth=(1, 2, 30, 32))  # fmt: skip
    four(
        "block_device,device=nvme1n1", written_bytes_per_s=(2e8, 6e8, 1e9, 2e9), read_latency_s=(1e-3, 2e-3, 1e-4, 3e-4)
    )
    four("cpu,core=total", user_fraction=(0.1, 0.2, 0.3, 0.5), system_fraction=(0.25, 0.75, 0.125, 0.375),
         busy_fraction=(0.1, 0.2, 0.3, 0.4))  # fmt: skip
    four(
        "cpu,core=0",
        user_fraction=(0.9, 0.9, 0.9, 0.9),
        system_fraction=(0.25, 0.75, 1, 0.5),
        busy_fraction=(0.5, 1, 0.25, 0.5),
    )
    four("cpu_frequency,core=0", frequency_hz=(2_000_000_000, 3_000_000_000, 1_000_000_000, 2_000_000_000))
    four("cpu_frequency,core=1", frequency_hz=(2_500_000_000, 3_500_000_000, 1_500_000_000, 4_000_000_000))
    four(
        "memory_bandwidth,domain=socket-0",
        total_bytes_per_s=(1e10, 3e10, 4e10, 8e10),
        written_bytes_per_s=(1e9, 2e9, 3e9, 6e9),
    )
    four(
        "network,interface=eth0",
        received_bytes_per_s=(1e9, 3e9, 5e9, 1e9),
        transmitted_bytes_per_s=(1e6, 2e6, 3e6, 7e6),
    )
    four("memory", available_bytes=(8 * GB, 6 * GB, 4 * GB, 2 * GB), dirty_bytes=(0, 2_000_000, 3_000_000, 5_000_000))
    four("pressure,kind=some,resource=io", stalled_fraction=(0.1, 0.3, 0.5, 0.7))
    four("pressure,kind=full,resource=memory", stalled_fraction=(0.9, 0.9, 0.9, 0.9))
    four("numa,node=0", remote_fraction=(0.1, 0.3, 0, 0.1))
    four(
        "interrupts,core=total,device=nvme0n1",
        remote_fraction=(0.5, 0.7, 0.1, 0.3),
        interrupts_per_s=(100, 300, 1000, 3000),
    )
    four("interrupts,core=1,device=nvme1n1", remote_fraction=(1, 1, 1, 1), interrupts_per_s=(9e6, 9e6, 9e6, 9e6))
    four("cpu_throttle,package=0", core_throttle_count=(1, 3, 5, 9), package_throttle_count=(0, 0, 0, 1))
    four("ipmi_sensor,sensor=Fan1,kind=fan,entity=29.1", speed_rpm=(5000, 7000, 100, 300))
    four("ipmi_sensor,sensor=Inlet,kind=temperature,entity=55.1", temperature_degc=(20, 22, 24, 28))
    four("ipmi_sensor,sensor=PSU,kind=other,entity=10.1", speed_rpm=(1, 1, 1, 1), temperature_degc=(99, 99, 99, 99))
    four("redfish_sensor,sensor=Inlet,chassis=1,resource=Temperatures/0", temperature_degc=(21, 23, 25, 26))
    four("ipmi_power", power_w=(300, 500, 600, 800))
    four("rapl,domain=package-0", power_w=(100, 140, 200, 220))
    four("telemetry_agent,collector=smart", AGENT_S, staleness_s=(1, 3, 8, 2), missed_samples=(0, 1, 2, 5),
         duration_s=(0.5, 2, 4, 1), lateness_s=(0.01, 0.002, 0.05, 0.25))  # fmt: skip
    four("telemetry_agent", AGENT_S, cpu_s=(1, 1.25, 13.225, 13.35), tools_cpu_s=(2, 2.5, 26.45, 26.7),
         rss_max_bytes=(30_000_000, 40_000_000, 50_000_000, 60_000_000),
         spool_bytes=(1_000_000, 2_000_000, 4_000_000, 3_000_000), undelivered_points=(100, 300, 500, 200),
         unspooled_points=(1, 2, 8, 4), rejected_points=(0, 3, 6, 7), thinned_points=(0, 5, 9, 10))  # fmt: skip
    # Of another machine: it must not be taken for the candidate's.
    four("telemetry_agent,instance=bmc", AGENT_S, cpu_s=(100, 900, 100, 900), tools_cpu_s=(100, 900, 100, 900),
         rss_max_bytes=(9 * GB, 9 * GB, 9 * GB, 9 * GB),
         spool_bytes=(9 * GB, 9 * GB, 9 * GB, 9 * GB), undelivered_points=(1, 1, 1, 1))  # fmt: skip
    slowly = (DAYS_S, HOUR_S)
    four("smart,device=nvme0n1,serial=F0,model=m", slowly, percentage_used_percent=(10, 11, 14, 12), media_errors=(0, 1, 5, 2),
         available_spare_percent=(99, 100, 98, 90), data_written_bytes=(1000 * GB, 2000 * GB, 5000 * GB, 3000 * GB),
         error_log_entries=(10, 12, 15, 13), unsafe_shutdowns=(1, 2, 6, 4), warning_temperature_time_min=(1, 2, 9, 7),
         critical_temperature_time_min=(0, 1, 4, 3), thermal_management_1_transitions=(2, 3, 8, 5),
         thermal_management_2_transitions=(0, 1, 6, 2), thermal_management_1_time_s=(10, 30, 90, 50),
         thermal_management_2_time_s=(5, 20, 40, 10))  # fmt: skip
    four("temperature,device=nvme0n1,label=Composite", slowly, temperature_degc=(40, 44, 50, 60))
    four("md_array,device=md0", slowly, degraded=(0, 1, 2, 1))
    four("smart_temperature,device=nvme0n1,serial=F0,sensor=composite", slowly, temperature_degc=(40, 42, 50, 44),
         warning_degc=(77, 77, 77, 77), critical_degc=(87, 87, 87, 87))  # fmt: skip
    four("pcie_link,device=nvme0n1", slowly, bandwidth_bytes_per_s=(8e9, 4e9, 7e9, 3e9))
    four("pcie_errors,device=nvme0n1,function=port", slowly, correctable=(0, 2, 7, 3))
    return "\n".join(found) + "\n"


@dataclass(frozen=True)
class Drawn:
    """One line: its values by their age in s, and the figures of its legend. `colour`: where the board chooses one."""

    name: str
    values: tuple[tuple[float, float], ...]
    figures: tuple[str, ...] = ()
    colour: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Graph:
    """One graph of one candidate. `mutants`: whether another function of an interval shows something else; else all points are shown."""

    board: Dashboard
    title: str
    lines: tuple[Drawn, ...]
    candidate: str = "flow"
    mutants: bool = True


def _two(name: str, early: float, late: float, *figures: str, colour: str = "", dashed: bool = False) -> Drawn:
    return Drawn(name, ((EARLY_S, early), (LATE_S, late)), figures, colour, dashed)


def _days(name: str, early: float, late: float, *figures: str, colour: str = "", dashed: bool = False) -> Drawn:
    return Drawn(name, ((DAYS_S, early), (HOUR_S, late)), figures, colour, dashed)


def _agents(name: str, early: float, late: float, *figures: str) -> Drawn:
    return Drawn(name, tuple(zip(AGENT_S, (early, late), strict=True)), figures)


def _pair(
    title: str, first: tuple[float, ...], second: tuple[float, ...], *figures: tuple[str, str], drive: str = ""
) -> Graph:
    """Both runs' values of each second. `figures`: mean and maximum of each."""
    seconds = tuple(120 - second for second in range(len(first)))
    lines = (
        Drawn(f"{name}{drive}", tuple(zip(seconds, values, strict=True)), each, colour)
        for name, values, each, colour in zip("AB", (first, second), figures, ("blue", "orange"), strict=True)
    )
    return Graph(COMPARE, title, tuple(lines), "")


# The offered rate: 180 GB in 60 s and 1.25 GB in a quarter of a second are (3 + 5) / 2 GB/s; then come 59.75 GB in 59.75 s.
GRAPHS = (
    Graph(RUN_LIVE, "Offered and stored rate", (
        Drawn("offered f1", ((60, 4e9), (0, 1e9)), ("1 GB/s", "4 GB/s"), "light-blue", True),
        Drawn("stored f1", ((60, 3e9), (0, 2e9)), ("2 GB/s", "3 GB/s"), "green"),
        Drawn("read back f1", ((60, 2e9), (0, 5e8)), ("500 MB/s", "2 GB/s"), "#808080"))),
    Graph(RUN_LIVE, "Offered and stored rate", (
        Drawn("offered n1", ((120, 1e9), (0, 2e9)), ("2 GB/s", "2 GB/s"), "light-blue", True),), "again", False),
    Graph(RUN_LIVE, "Backlog against the transient buffer", (
        Drawn("backlog t1", ((1, 9000),), ("9 kB", "9 kB"), "yellow"), Drawn("backlog t2", ((0, 0),), ("0 B", "0 B"), "yellow"),
        Drawn("transient buffer t1", ((1, 10_000),), ("10 kB", "10 kB"), "red", True),
        Drawn("transient buffer t2", ((0, 10_000),), ("10 kB", "10 kB"), "red", True)), "two", False),
    Graph(RUN_LIVE, "Write rate of each drive", (
        _two("nvme0n1", 1.5e9, 2e9, "1.75 GB/s", "2 GB/s"), _two("nvme1n1", 4e8, 1.5e9, "950 MB/s", "1.50 GB/s"))),
    Graph(RUN_LIVE, "Request latency of each drive", (
        _two("nvme0n1 write", 2e-4, 3e-3, "3 ms", "3 ms"), _two("nvme1n1 read", 1.5e-3, 2e-4, "200 µs", "1.50 ms"))),
    Graph(RUN_LIVE, "Queue depth of each drive", (_two("nvme0n1", 1.5, 31, "31.0", "31.0"),)),
    Graph(RUN_LIVE, "CPU, the whole machine", (
        _two("user", 0.15, 0.4, "27.5%", "40%"), _two("system", 0.5, 0.25, "37.5%", "50%"))),
    Graph(RUN_LIVE, "Kernel time of each core", (_two("core 0", 0.5, 0.75, "75%"),)),
    Graph(RUN_LIVE, "Memory", (_two("available", 7e9, 3e9, "3 GB", "7 GB"), _two("dirty", 1e6, 4e6, "4 MB", "4 MB"))),
    Graph(RUN_LIVE, "Stalled tasks (PSI)", (_two("io", 0.2, 0.6, "60%", "60%"),)),
    Graph(RUN_LIVE, "NUMA: what crosses between nodes", (
        _two("memory of node 0", 0.2, 0.05, "20%"), _two("interrupts of nvme0n1", 0.6, 0.2, "60%"))),
    Graph(RUN_LIVE, "Interrupts of drives and network cards", (_two("nvme0n1", 200, 2000, "2K c/s"),)),
    Graph(RUN_LIVE, "CPU throttling", (
        Drawn("cores of package 0", ((LATE_S, 6),), ("6", "6")), Drawn("package 0", ((LATE_S, 1),), ("1", "1")))),
    Graph(RUN_LIVE, "Fans", (_two("Fan1", 6000, 200),)),
    Graph(RUN_LIVE, "Temperatures in the server", (_two("Inlet", 21, 26), _two("Inlet (Redfish)", 22, 25.5))),
    Graph(RUN_LIVE, "Power", (_two("server", 400, 700, "700 W", "700 W"), _two("package-0", 120, 210, "210 W", "210 W"))),
    Graph(RUN_LIVE, "Age of each collector's last sample", (Drawn("smart", ((EARLY_S, 3), (180, 8))),)),
    Graph(RUN_LIVE, "Missed samples", (Drawn("smart", ((180, 4),)),)),
    Graph(RUN_LIVE, "How many cores are how busy", (_two("0", 74.9925, 37.49625),)),
    Graph(RUN_LIVE, "CPU frequency", (
        _two("slowest core", 2e9, 1e9, "1 GHz", "2 GHz"), _two("fastest core", 3.5e9, 4e9, "4 GHz", "4 GHz"))),
    Graph(RUN_LIVE, "Memory bandwidth", (
        _two("socket-0", 2e10, 6e10, "60 GB/s", "60 GB/s"), _two("socket-0 written", 1.5e9, 4.5e9, "4.50 GB/s", "4.50 GB/s"))),
    Graph(RUN_LIVE, "Network", (
        _two("eth0 received", 2e9, 3e9, "3 GB/s", "3 GB/s"), _two("eth0 sent", 1.5e6, 5e6, "5 MB/s", "5 MB/s"))),
    Graph(RUN_LIVE, "Time that a sample takes", (_agents("smart", 2, 4),)),
    Graph(RUN_LIVE, "Lateness of fast samples", (_agents("smart", 0.01, 0.25),)),
    Graph(RUN_LIVE, "Points that wait for InfluxDB", (
        _agents("in the spool f1", 300, 500, "500", "500"), _agents("not spooled f1", 2, 8, "8", "8"),
        _agents("rejected f1", 3, 7, "7", "7"), _agents("thinned f1", 5, 10, "10", "10"))),
    # 0.25 s in a quarter of a second, then 11.975 s in 119.75 s and 0.125 s in a quarter; the tools take twice as much.
    Graph(RUN_LIVE, "The agent's CPU time", (_agents("agent f1", 1, 0.3, "30%", "100%"), _agents("tools f1", 2, 0.6, "60%", "200%"))),
    Graph(RUN_LIVE, "The agent's memory and spool", (
        _agents("memory f1", 4e7, 6e7, "60 MB", "60 MB"), _agents("spool f1", 2e6, 4e6, "4 MB", "4 MB"))),
    Graph(DRIVE_HEALTH, "Error log entries", (_days("nvme0n1 F0", 12, 15, "15"),)),
    Graph(DRIVE_HEALTH, "Unsafe shutdowns", (_days("nvme0n1 F0", 2, 6, "6"),)),
    Graph(DRIVE_HEALTH, "As the kernel reads them", (_days("nvme0n1 Composite", 42, 55, "55 °C", "55 °C"),)),
    Graph(DRIVE_HEALTH, "Times that throttling began", (
        _days("nvme0n1 F0 TMT1", 3, 8, "8"), _days("nvme0n1 F0 TMT2", 1, 6, "6"))),
    Graph(DRIVE_HEALTH, "Time spent throttling", (
        _days("nvme0n1 F0 TMT1", 30, 90, "1.50 mins"), _days("nvme0n1 F0 TMT2", 20, 40, "40 s"))),
    Graph(DRIVE_HEALTH, "Time above its own limits", (
        _days("nvme0n1 F0 warning", 2, 9, "9 min"), _days("nvme0n1 F0 critical", 1, 4, "4 min"))),
    Graph(DRIVE_HEALTH, "Arrays: members missing", (_days("md0", 1, 2, "2"),)),
    Graph(DRIVE_HEALTH, "Endurance used", (_days("nvme0n1 F0", 11, 14, "14%"),)),
    Graph(DRIVE_HEALTH, "Spare left", (_days("nvme0n1 F0", 99, 90, "90%"),)),
    Graph(DRIVE_HEALTH, "Media errors", (_days("nvme0n1 F0", 1, 5, "5"),)),
    Graph(DRIVE_HEALTH, "Written by the host and onto the NAND", (_days("nvme0n1 F0 host", 2e12, 5e12, "5 TB"),)),
    Graph(DRIVE_HEALTH, "Each drive's own sensors", (
        _days("nvme0n1 composite", 42, 50, "50 °C", "50 °C"),
        _days("nvme0n1 warning", 77, 77, "77 °C", "77 °C", colour="yellow", dashed=True),
        _days("nvme0n1 critical", 87, 87, "87 °C", "87 °C", colour="red", dashed=True))),
    Graph(DRIVE_HEALTH, "PCIe bandwidth", (_days("nvme0n1", 4e9, 3e9, "3 GB/s", "3 GB/s"),)),
    Graph(DRIVE_HEALTH, "PCIe errors (AER)", (_days("nvme0n1 correctable", 2, 7, "7"),)),
    _pair("Backlog", (2.5e8, 5e8, 1e9), (5e8, 5e8, 0), ("583 MB", "1 GB"), ("333 MB", "500 MB")),
    _pair("Write rate of each drive", (1.5e9, 2e9), (6e9, 8e9), ("1.75 GB/s", "2 GB/s"), ("7 GB/s", "8 GB/s"), drive=" nvme0n1"),
    _pair("Drive temperature", (12, 15), (48, 60), ("13.5 °C", "15 °C"), ("54 °C", "60 °C"), drive=" nvme0n1"),
    _pair("Write latency at the device", (2e-4, 3e-3), (8e-4, 1.2e-2), ("1.60 ms", "3 ms"), ("6.40 ms", "12 ms"), drive=" nvme0n1"),
    _pair("CPU in the kernel", (0.1875, 0.3125, 0.25), (0.09375, 0.15625, 0.125), ("25%", "31.3%"), ("12.5%", "15.6%")),
    _pair("Power", (400, 700), (1600, 2800), ("550 W", "700 W"), ("2.20 kW", "2.80 kW")),
    Graph(FLEET, "Margin of each requirement, by model and firmware", (
        Drawn("SNB-01 m f (a)", ((30 * HOUR_S, -5), (DAY_S, -3.5)), ("-3.50%", "-5%")),
        Drawn("SNB-01 m f (b)", ((20 * HOUR_S, -90),), ("-90%", "-90%")),
        Drawn("SNB-01 m f (c)", ((20 * DAY_S, 12),), ("12%", "12%")),
        Drawn("SNB-01 m f (calm)", ((360, 30),), ("30%", "30%")),
        Drawn("SNB-01 m f (doubtful)", ((12 * HOUR_S, -1.5),), ("-1.50%", "-1.50%")),
        Drawn("SNB-01 m f (faulty)", ((11 * HOUR_S, -70),), ("-70%", "-70%")),
        Drawn("SNB-01 m f (h35)", ((35 * HOUR_S, 20),), ("20%", "20%")),
        Drawn("SNB-01 m f (h37)", ((37 * HOUR_S, -60),), ("-60%", "-60%")),
        Drawn("SNB-02 m f (a)", ((21 * DAY_S, 50),), ("50%", "50%"))), "", False),
)  # fmt: skip
