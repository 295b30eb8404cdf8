"""The whole server, second by second: drives in a stripe, fans, BMC, clock. It keeps what happened, for its tools and for the truth.

True time is the control node's. `harms` says what a hazard did to the server, in words of the cause: the truth of a run rests on
that, and on nothing that the bench says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from daq_bench.simulation.physics.drawing import Group, Spec, compares, is_sold, soaks
from daq_bench.simulation.physics.drive import Drive
from daq_bench.simulation.physics.hazards import Hazard

START_S = 1_790_000_000.0  # an arbitrary second of 2026
APART_S, RUNS = 7200.0, 100_000  # each seed's run begins at a time of its own: a candidate has one run at a time
FANS_RPM = 14_700
STUCK = ("drive_sensor_stuck", "hot_sensor_stuck")
CPUS = 32  # threads of an EPYC 7302
OWN_CPUS = 2.0  # that the bench's load takes: its source and its writer
S_PER_OTHERS_GB = 0.5  # ~ CPU time of another process for each GB that it writes through the page cache


@dataclass
class Others:
    """The account of other processes than the bench's: B written to the array and elsewhere, CPU time in s. `own`: B by the bench."""

    written: float = 0.0
    elsewhere: float = 0.0
    cpu_s: float = 0.0
    own: float = 0.0
    seconds: float = 0.0

    def note(self, written: float, elsewhere: float, cpus: float, own: float) -> None:
        """One second of it."""
        self.written, self.elsewhere, self.cpu_s = self.written + written, self.elsewhere + elsewhere, self.cpu_s + cpus
        self.own, self.seconds = self.own + own, self.seconds + 1.0

    @property
    def cpu_share(self) -> float:
        """Its share of all CPUs."""
        return self.cpu_s / (CPUS * self.seconds or 1.0)

    @property
    def written_share(self) -> float:
        """The bytes that it wrote to the array, over those that the bench wrote."""
        return self.written / (self.own or 1.0)


@dataclass(frozen=True)
class Visit:
    """A write to one target of a comparison: what it could have taken in each second, B, and the rate that came of it, B/s."""

    target: str
    could: tuple[float, ...]
    rate: float


@dataclass
class Server:
    spec: Spec
    scenario: str = "record"
    now_s: float = START_S
    record: int = 0  # the one under way; 0: none
    records_made: int = 0
    clock_offset_s: float = 0.0
    has_stepped: bool = False
    others: Others = field(default_factory=Others)  # since it was bought
    others_of: dict[int, Others] = field(default_factory=dict)  # in each record
    busy_s: float = 0.0  # CPU time of the bench's load
    written_to: dict[str, float] = field(default_factory=dict)  # B, by target
    read_from: dict[str, float] = field(default_factory=dict)
    rate: float = 0.0  # B written to the array in the last second
    provisioned: bool = False
    scale: float = 1.0  # of the load that the run was started with
    least_headroom_k: int = 999  # of any drive to its own warning temperature, while it was watched
    hottest_degc: int = 0  # of any drive, while it was watched
    # Lowest and highest degC of each drive whose sensor is stuck, while it was watched.
    behind_stuck: dict[int, tuple[int, int]] = field(default_factory=dict)
    not_offered_share: float = 0.0  # of the superchunks that were due, in the worst record
    # Bytes that the array could take of each record in each second.
    paces: dict[int, list[float]] = field(default_factory=dict)
    scanned: list[tuple[int, float, float]] = field(default_factory=list)  # of each timed scan: block, seconds, B/s
    array_discarded: float = 0.0
    in_bulk: bool = False  # the target is being preconditioned
    most_owed: float = 0.0  # B that had arrived and were not on the array, of the worst record
    soaked: list[float] = field(default_factory=list)  # B that the target could have taken of the soak in each second
    # Bytes that the target could have taken in each second of a steady-state round: of sequential 128 KiB writes.
    rounds: list[list[float]] = field(default_factory=list)
    passes: list[list[float]] = field(default_factory=list)  # the same of each pass over a drive that was emptied
    visits: list[Visit] = field(default_factory=list)  # of the targets of a comparison
    scattered_bytes: float = 0.0  # written to random places since the drive was emptied
    soaked_headroom_k: list[int] = field(default_factory=list)  # of the hottest drive, in each of them
    throttled: bool = False  # a drive of it slowed itself down while it was watched
    harms: dict[str, str] = field(default_factory=dict)
    fired: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)  # targets that lost a drive under their load
    watcher: Callable[[], None] | None = None  # the telemetry agent, once a second
    counted: dict[int, tuple[int, int, int, int]] = field(
        default_factory=dict
    )  # offered, stored, lost, damaged superchunks
    begins: dict[int, float] = field(default_factory=dict)  # of each record, true time

    def __post_init__(self) -> None:
        self.now_s = START_S + self.spec.seed % RUNS * APART_S
        offset = self.spec.has("clock_offset")
        if offset:
            self.clock_offset_s = offset.strength
            self.note("clock_offset")
        self.drives = [one.made() for one in self.spec.drives]
        self.group = self.spec.own  # the target that is loaded

    def aim_at(self, group: Group) -> None:
        """From here on this target is loaded."""
        self.group = group

    @property
    def loaded(self) -> list[Drive]:
        """The drives of the target that is loaded."""
        return [self.drives[number] for number in self.group.drives]

    @property
    def array_written(self) -> float:
        return self.written_to.get(self.group.name, 0.0)

    @property
    def array_read(self) -> float:
        return self.read_from.get(self.group.name, 0.0)

    @property
    def compares(self) -> bool:
        return compares(self.scenario)

    @property
    def is_sold(self) -> bool:
        return is_sold(self.scenario)

    @property
    def soaks(self) -> bool:
        return soaks(self.scenario)

    @property
    def wears(self) -> bool:
        return self.scenario.endswith("endurance")

    @property
    def saturates(self) -> bool:
        return self.scenario.endswith("saturation")

    @property
    def is_steady_state(self) -> bool:
        return self.scenario.endswith("steady-state")

    # The hazards, as they act at this moment

    def active(self, *kinds: str) -> Iterator[Hazard]:
        for hazard in self.spec.hazards:
            if hazard.kind in kinds and self._is_on(hazard):
                yield hazard

    def _is_on(self, hazard: Hazard) -> bool:
        if hazard.record == 0:
            return True
        since = self.since(hazard)
        return since is not None and 0 <= since < self._length_s(hazard)

    @staticmethod
    def _length_s(hazard: Hazard) -> float:
        if hazard.kind in ("bmc_hangs", "drive_sensor_silent", "agent_silent"):
            return hazard.strength
        if hazard.kind in ("throttle_recurring", "throttle_creeping"):
            return 1e9
        return hazard.length_s

    def since(self, hazard: Hazard) -> float | None:
        """Seconds since it began; None before its record, negative before its moment."""
        began = self.begins.get(hazard.record)
        return None if began is None else self.now_s - began - hazard.at_s

    def note(self, kind: str) -> None:
        """A hazard acted: counted, whether or not it did harm."""
        self.fired.add(kind)

    def lose(self, pulled: Hazard) -> None:
        """The target that is loaded has lost a drive, and its load has met that."""
        self.harms["pulled"] = f"drive {pulled.drive} was pulled"
        self.failed.add(self.group.name)

    def has_struck(self, kind: str) -> Hazard | None:
        """A hazard that stays once it has begun: a broken fan, a pulled drive, a changed setting."""
        hazard = self.spec.has(kind)
        if hazard is None:
            return None
        since = self.since(hazard) if hazard.record else 0.0
        if since is None or since < 0:
            return None
        self.note(kind)
        return hazard

    # Time

    def begin_record(self) -> None:
        self.records_made += 1
        self.record = self.records_made
        self.begins[self.record] = self.now_s

    def end_record(self) -> None:
        self.record = 0

    def note_soaked(self, could: float) -> None:
        """The second that has passed was one of a soak, or of the load after it, which is no part of it."""
        if self.record == 1:
            self.soaked.append(could)
            self.soaked_headroom_k.append(min(one.spec.warning_degc - one.composite_degc for one in self.drives))

    def idle(self, seconds: float) -> None:
        """Time that passes without load, in whole seconds and a rest."""
        for _ in range(int(seconds)):
            self.second(0.0, 0.0)
        self.now_s += seconds - int(seconds)

    def pace(self) -> float:
        """Returns what the array can take of the bench in the coming second, B: a stripe is as fast as its slowest member."""
        group = self.group
        pace = min(map(self._drive_pace, group.drives)) * group.data_drives
        for limit in (group.ceiling * group.data_drives / len(group.drives), group.parity_rate):
            pace = min(pace, limit or pace)
        for hazard in self.active("wrong_numa_node"):
            self.note(hazard.kind)
            pace *= 1 - hazard.strength
        return max(0.0, pace * (1 - self._others("other_cpu")) - self.foreign_bytes())

    def foreign_bytes(self, kind: str = "other_load") -> float:
        """Returns what another process writes in this second: to the array, or with `other_device` elsewhere."""
        return self._others(kind) * self.group.data_drives * self.loaded[0].spec.steady_rate

    def _others(self, kind: str) -> float:
        """Another process works while a record is made."""
        total = 0.0
        for hazard in self.active(kind):
            if self.record:
                self.note(hazard.kind)
                total += hazard.strength
        return total

    def _drive_pace(self, number: int) -> float:
        drive = self.drives[number]
        pulled = self.has_struck("drive_pulled")
        if pulled and pulled.drive == number:
            drive.present = False
        pace = drive.pace()
        for hazard in self.active("slow_drive", "counterfeit_slow"):
            if hazard.drive == number:
                self.note(hazard.kind)
                pace *= 1 - hazard.strength
        return pace

    def second(self, written: float, read: float) -> None:
        """One second passes, in which the bench wrote and read so many bytes."""
        self.now_s += 1.0
        self._step_clock()
        foreign = self._note_others(written, read)
        group = self.group
        each, each_read = (written + foreign) / group.data_drives, read / len(group.drives)
        air = self._air_factor()
        for number, drive in enumerate(self.drives):
            is_loaded = number in group.drives
            takes = each if is_loaded and drive.present else 0.0
            drive.second(takes, each_read * is_loaded, self._foreign_w(number), air)
        self.written_to[group.name] = self.array_written + written + foreign
        self.read_from[group.name] = self.array_read + read
        self.rate = written + foreign
        if self.watcher:
            least = min(drive.spec.warning_degc - drive.composite_degc for drive in self.drives)
            self.least_headroom_k = min(self.least_headroom_k, least)
            self.hottest_degc = max(self.hottest_degc, *(drive.composite_degc for drive in self.drives))
            self.throttled = self.throttled or any(drive.level for drive in self.drives)
            self._look_behind_stuck()
            self.watcher()

    def _note_others(self, written: float, read: float) -> float:
        """Another process takes its share of this second; returns B that it wrote to the array."""
        foreign, elsewhere = self.foreign_bytes(), self.foreign_bytes("other_device")
        cpus = CPUS * self._others("other_cpu") + S_PER_OTHERS_GB * (foreign + elsewhere) / 1e9
        self.busy_s += OWN_CPUS * (written + read > 0)
        counted = [self.others]
        if self.record:
            counted.append(self.others_of.setdefault(self.record, Others()))
        for one in counted:
            one.note(foreign, elsewhere, min(cpus, CPUS - OWN_CPUS), written)
        return foreign

    def _look_behind_stuck(self) -> None:
        for stuck in self.spec.hazards:
            if stuck.kind in STUCK:
                degc = self.drives[stuck.drive].composite_degc
                low, high = self.behind_stuck.get(stuck.drive, (degc, degc))
                self.behind_stuck[stuck.drive] = (min(low, degc), max(high, degc))

    @property
    def hidden_k(self) -> int:
        """Returns how far the temperature moved of a drive whose reading did not; 0 where no sensor is stuck."""
        return max((high - low for low, high in self.behind_stuck.values()), default=0)

    @property
    def array_name(self) -> str:
        """Kernel name of what carries the target: the stripe, or the only drive."""
        return "md0" if len(self.group.drives) > 1 else self.loaded[0].spec.name

    @property
    def clock_s(self) -> float:
        """The candidate's clock."""
        return self.now_s + self.clock_offset_s

    @property
    def watts(self) -> float:
        each = self.rate / self.group.data_drives
        drives = sum(one.idle_w for one in self.spec.drives)
        drives += sum(one.spec.w_per_gb_per_s * each / 1e9 for one in self.loaded)
        return self.spec.base_w + drives + 40 * (self.rate > 0)

    @property
    def fan_rpm(self) -> int:
        return 0 if self.has_struck("fan_failure") else FANS_RPM

    def _step_clock(self) -> None:
        step = self.has_struck("clock_step")
        if step and not self.has_stepped:
            self.has_stepped = True
            self.clock_offset_s += step.strength

    def _air_factor(self) -> float:
        broken = self.has_struck("fan_failure")
        return broken.strength if broken else 1.0

    def _foreign_w(self, number: int) -> float:
        """Heat that reaches one drive from elsewhere."""
        total = 0.0
        for hazard in self.spec.hazards:
            if hazard.drive != number or not hazard.kind.startswith(("throttle_", "hot_")):
                continue
            share = self._heat_share(hazard)
            if share and self.watcher:
                self.note(hazard.kind)
            total += share * hazard.strength
        return total

    def _heat_share(self, hazard: Hazard) -> float:
        if hazard.kind in ("throttle_from_start", "hot_sensor_stuck"):
            return 1.0
        since = self.since(hazard)
        if since is None or since < 0:
            return 0.0
        if hazard.kind == "throttle_once":
            return float(since < hazard.length_s)
        if hazard.kind == "throttle_creeping":
            return min(1.0, since / (4 * hazard.length_s))
        return float(since % (2 * hazard.length_s) < hazard.length_s)
