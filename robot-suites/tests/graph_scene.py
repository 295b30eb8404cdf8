"""A candidate whose every sample is known, and what the boards' graphs draw of it: by hand, from the lines below alone.

Each series has two samples a quarter of a second apart, which one interval takes together, and later two more: so a graph that takes the
mean, the highest or the lowest value of an interval shows another line each."""

from __future__ import annotations

from dataclasses import dataclass

from board_scene import DAY_S, DRIVE_HEALTH, FLEET, HOUR_S, RUN_LIVE, SECOND_NS, Dashboard

from daq_bench.bench_dashboards.declared import Declared

FLOW = "host=flow,run=f1"
QUARTER_S = 0.25
GB = 10**9
EARLY_S, LATE_S = 300, 60
DAYS_S = 2 * DAY_S
Four = tuple[float, float, float, float]


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
    four("block_device,device=nvme0n1", written_bytes_per_s=(1e9, 2e9, 3e9, 1e9), write_latency_s=(1e-4, 3e-4, 2e-3, 4e-3),
         queue_depth=(1, 2, 30, 32))  # fmt: skip
    four(
        "block_device,device=nvme1n1", written_bytes_per_s=(2e8, 6e8, 1e9, 2e9), read_latency_s=(1e-3, 2e-3, 1e-4, 3e-4)
    )
    four("cpu,core=total", user_fraction=(0.1, 0.2, 0.3, 0.5), system_fraction=(0.25, 0.75, 0.125, 0.375))
    four("cpu,core=0", user_fraction=(0.9, 0.9, 0.9, 0.9), system_fraction=(0.25, 0.75, 1, 0.5))
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
    four("telemetry_agent,collector=smart", (EARLY_S, 180), staleness_s=(1, 3, 8, 2), missed_samples=(0, 1, 2, 5))
    slowly = (DAYS_S, HOUR_S)
    four("smart,device=nvme0n1,serial=F0,model=m", slowly, percentage_used_percent=(10, 11, 14, 12), media_errors=(0, 1, 5, 2),
         available_spare_percent=(99, 100, 98, 90), data_written_bytes=(1000 * GB, 2000 * GB, 5000 * GB, 3000 * GB))  # fmt: skip
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


# The offered rate: 180 GB in 60 s and 1.25 GB in a quarter of a second are (3 + 5) / 2 GB/s; then come 59.75 GB in 59.75 s.
GRAPHS = (
    Graph(RUN_LIVE, "Offered and stored rate", (
        Drawn("offered", ((60, 4e9), (0, 1e9)), ("1 GB/s", "4 GB/s"), "light-blue", True),
        Drawn("stored", ((60, 3e9), (0, 2e9)), ("2 GB/s", "3 GB/s"), "green"),
        Drawn("read back", ((60, 2e9), (0, 5e8)), ("500 MB/s", "2 GB/s"), "#808080"))),
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
    Graph(FLEET, "Margin of each requirement, by model and firmware", (
        Drawn("SNB-01 m f (a)", ((DAY_S, -3.5),), ("-3.50%", "-3.50%")),
        Drawn("SNB-01 m f (b)", ((20 * HOUR_S, -90),), ("-90%", "-90%")),
        Drawn("SNB-01 m f (c)", ((20 * DAY_S, 12),), ("12%", "12%")),
        Drawn("SNB-01 m f (calm)", ((360, 30),), ("30%", "30%"))), "", False),
)  # fmt: skip
