"""A seed's server and hazards. The seed draws first which kinds of hazards this run may have at all, then the server, then the hazards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from daq_bench.simulation.physics.drive import AIR_DEGC, DriveSpec
from daq_bench.simulation.physics.hazards import KINDS, Hazard, drawn

DEMAND = 9.24288e9  # B/s of one readout unit: 10 links x 166 kHz x 5568 B
# How the array's steady pace stands to the demand, and how often each is drawn.
CLASSES: dict[str, tuple[float, float]] = {
    "ample": (1.25, 2.0),
    "above": (1.02, 1.15),
    "at": (0.99, 1.02),
    "below": (0.6, 0.99),
}
WEIGHTS = (60, 20, 8, 12)
NO_HAZARD, SEVERAL = 0.25, 0.12  # shares of the runs
# Steady writing in a thermal soak leaves a drive so many K below its own warning temperature; COOLING_WEIGHTS: how often it is.
COOLING: dict[str, tuple[float, float]] = {"ample": (8, 30), "tight": (-6, 8)}
COOLING_WEIGHTS = (75, 25)
EARLY_K, EARLY_SHARE = 12, 0.2  # a host may have set a drive to throttle so far below its warning temperature (HCTM)
NOT_IN_SOAK = ("bit_flips", "torn_writes", "lost_writes", "misplaced_writes", "trailer_lost")  # of daqwriter's records
# Those of a comparison: who the machine is, whether it can be reached, what its drives are worth, and whether somebody watched.
OF_COMPARISON = (
    "swapped_drive", "counterfeit_serial", "swapped_after_preflight", "network_cut", "power_cut", "drive_pulled", "slow_drive",
    "counterfeit_slow", "wrong_numa_node", "agent_silent", "clock_step", "clock_offset", "influxdb_down", "firmware_changed",
    "sysctl_reset", "less_asked",
)  # fmt: skip
SOAK_THIRD_S = 550.0  # what befalls a record befalls a third of a soak
REFERENCE = "reference"  # name of the run's own target, of a comparison
MARKET = "market"  # servers that are sold, in snb-100s; "market-thermal": the same in the shipped scenario thermal
MODELS = ("SIM X100", "SIM PM9", "SIM CM6", "SIM 9400")


@dataclass(frozen=True)
class Group:
    """The drives that carry one target, by their places in the server. `raid`: the level, where there are several; `ceiling`: B/s that
    the way to them takes, `parity_rate` what md's parity takes; 0: no limit."""

    name: str
    drives: tuple[int, ...]
    raid: int = 0
    ceiling: float = 0.0
    parity_rate: float = 0.0
    chunk: str = "512KiB"

    @property
    def level(self) -> int | None:
        """Level of md RAID; None for a single drive."""
        return self.raid if len(self.drives) > 1 else None

    @property
    def array(self) -> str:
        return "single" if self.level is None else f"raid{self.level}"

    @property
    def data_drives(self) -> float:
        return data_drives(self.level, len(self.drives))


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The server as bought. `pace`: its class. `raw`: the target is its only drive, without a file system; `raid`: the level of its
    set, a stripe where nothing else is said. `ceiling`: B/s that the way to its drives takes, `parity_rate` what md's parity takes; 0: no
    limit. `discards`: its set passes a trim on; `zero_share`: of a raw drive's places read as zeros afterwards. `random_share`: of its
    sequential rate that a full drive keeps when small blocks go to random places; `read_rate`: B/s that one drive gives. `sets`: of a
    comparison, whose reference is the first drive alone; the first of them is judged."""

    seed: int
    name: str
    pace: str
    drives: tuple[DriveSpec, ...]
    transient_buffer: str
    memory_bytes: int
    base_w: float
    hazards: tuple[Hazard, ...]
    medium: str = ""  # what its drives are made of
    raw: bool = False
    raid: int = 0
    filesystem: str = "xfs"
    ceiling: float = 0.0
    parity_rate: float = 0.0
    zero_share: float = 1.0
    discards: bool = True
    random_share: float = 0.2
    read_rate: float = 0.0
    others_name: str = "rsync"  # of the process that works there beside the bench
    sets: tuple[Group, ...] = ()

    @property
    def own(self) -> Group:
        """The run's own target."""
        numbers = (0,) if self.sets else tuple(range(len(self.drives)))
        return Group(REFERENCE if self.sets else "", numbers, self.raid, self.ceiling, self.parity_rate)

    @property
    def judged(self) -> Group:
        """The target that the run is about."""
        return self.sets[0] if self.sets else self.own

    @property
    def array(self) -> str:
        return self.judged.array

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the run's own target, before any file system."""
        return self.capacity_of(self.own)

    def capacity_of(self, group: Group) -> int:
        return int(self.drives[group.drives[0]].size_bytes * group.data_drives)

    def has(self, kind: str) -> Hazard | None:
        return next((one for one in self.hazards if one.kind == kind), None)


def data_drives(level: int | None, drives: int) -> float:
    """The drives' worth of data in a set."""
    return {None: 1.0, 0: drives, 5: drives - 1, 6: drives - 2, 10: drives / 2}[level]


def spec_of(seed: int, scenario: str = "record") -> Spec:
    """The server and the hazards of a seed."""
    if is_sold(scenario):
        from daq_bench.simulation.physics.market import bought  # which draws with what stands here

        return bought(seed, scenario)
    spec = _of_record(seed)
    return _of_soak(spec) if soaks(scenario) else spec


def is_sold(scenario: str) -> bool:
    """Says whether the servers of it are drawn from the market."""
    return scenario.startswith(MARKET)


def takes_raw_drives(scenario: str) -> bool:
    """Says whether nothing but a whole drive without a file system will do."""
    return scenario.endswith(("steady-state", "saturation"))


def wears(scenario: str) -> bool:
    return scenario.endswith("endurance")


def soaks(scenario: str) -> bool:
    return scenario.endswith("thermal")


def compares(scenario: str) -> bool:
    """Says whether sets of drives are held against a reference drive."""
    return scenario.endswith("raid-vs-3dxp")


def _of_soak(spec: Spec) -> Spec:
    """The same server, cooled for a load as fast as its drives take it, and what may befall it in a soak."""
    random = Random(f"thermal {spec.seed}")
    room = random.uniform(*COOLING[random.choices(tuple(COOLING), COOLING_WEIGHTS)[0]])
    early_k = EARLY_K if random.random() < EARLY_SHARE else 0
    drives = tuple(cooled(one, room, early_k) for one in spec.drives)
    hazards = _hazards(random, len(drives), kinds_of("thermal"))
    return replace(spec, drives=drives, hazards=tuple(in_soak(one) for one in hazards))


def kinds_of(scenario: str) -> tuple[str, ...]:
    """The hazards that can befall a run of it."""
    if takes_raw_drives(scenario):
        return tuple(kind for kind in KINDS if kind not in (*NOT_IN_SOAK, "short_record"))
    if compares(scenario):
        return OF_COMPARISON
    if wears(scenario):  # its load has no scale
        return tuple(kind for kind in KINDS if kind not in (*NOT_IN_SOAK, "short_record", "less_asked"))
    return tuple(kind for kind in KINDS if not soaks(scenario) or kind not in NOT_IN_SOAK)


def in_soak(hazard: Hazard) -> Hazard:
    """A hazard of one of three records in one third of the only soak."""
    if hazard.record == 0:
        return hazard
    return replace(hazard, record=1, at_s=hazard.at_s + SOAK_THIRD_S * (hazard.record - 1))


def cooled(one: DriveSpec, room_k: float, early_k: int, rate: float = 0.0) -> DriveSpec:
    """The drive that writing at `rate` leaves so far below its own warning temperature; 0: at its steady rate."""
    load_w = one.idle_w + one.w_per_gb_per_s * (rate or one.steady_rate) / 1e9
    to_air = max(0.15, (one.warning_degc - room_k - AIR_DEGC) / load_w - one.to_case_k_per_w)
    tmt1 = one.warning_degc - early_k if one.tmt1_degc and early_k else one.tmt1_degc
    return replace(one, to_air_k_per_w=to_air, tmt1_degc=tmt1)


def _of_record(seed: int) -> Spec:
    random = Random(f"simulation {seed}")
    count = random.choice((1, 2, 2, 4))
    pace = random.choices(tuple(CLASSES), WEIGHTS)[0]
    ratio = random.uniform(*CLASSES[pace])
    one = _drive(random, ratio * DEMAND / count, count)
    drives = tuple(_numbered(random, one, number) for number in range(count))
    return Spec(
        seed=seed,
        name="simulated",
        pace=pace,
        drives=drives,
        transient_buffer=random.choice(("6GiB", "8GiB", "16GiB")),
        memory_bytes=random.choice((64, 128, 512)) * 2**30,
        base_w=random.uniform(180, 420),
        hazards=_hazards(random, count),
    )


def _drive(random: Random, steady_rate: float, count: int) -> DriveSpec:
    """A drive whose steady pace is `steady_rate`; so cooled that writing at the demand's pace leaves it 8 to 30 K below its warning."""
    cached = random.random() < 0.7
    amplification = random.uniform(1.02, 1.5) if cached else 1.0
    cell = steady_rate * amplification
    warning = random.choice((70, 75, 77, 80))
    idle, per_rate = random.uniform(3, 6), random.uniform(1.5, 3.5)
    to_case = random.uniform(0.3, 0.7)
    load_w = idle + per_rate * min(steady_rate, DEMAND / count) / 1e9
    room = warning - random.uniform(8, 30) - 27
    to_air = max(0.15, room / load_w - to_case)
    throttles = random.random() < 0.8
    return DriveSpec(
        name="",
        serial="",
        model=random.choice(MODELS),
        firmware=random.choice(("E2MU200", "GDC7302Q", "1.0.7")),
        wwn="",
        size_bytes=1_024_000_000_000 // count,
        cache_bytes=random.uniform(20, 120) * 1e9 / count if cached else 0.0,
        cache_rate=cell * random.uniform(1.0, 1.8),
        cell_rate=cell,
        write_amplification=amplification,
        idle_w=idle,
        w_per_gb_per_s=per_rate,
        to_case_k_per_w=to_case,
        to_air_k_per_w=to_air,
        cells_j_per_k=random.uniform(20, 60),
        case_j_per_k=random.uniform(40, 160),
        warning_degc=warning,
        critical_degc=warning + random.choice((5, 8, 10)),
        tmt1_degc=warning - random.choice((0, 2, 4)) if throttles else 0,
        tmt2_degc=warning + 2 if throttles else 0,
    )


def _numbered(random: Random, one: DriveSpec, number: int) -> DriveSpec:
    serial = f"SIM{random.randrange(16**8):08X}"
    return replace(one, name=f"nvme{number}n1", serial=serial, wwn=f"eui.{random.randrange(16**16):016x}")


def _hazards(random: Random, drives: int, kinds: tuple[str, ...] = KINDS) -> tuple[Hazard, ...]:
    draw = random.random()
    if draw < NO_HAZARD:
        return ()
    number = random.randint(2, 3) if draw > 1 - SEVERAL else 1
    return tuple(drawn(random, kind, drives) for kind in random.sample(kinds, number))
