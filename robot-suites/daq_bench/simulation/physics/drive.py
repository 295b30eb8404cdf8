"""One drive: a fast cache in front of slower cells, garbage collection once it is full, heat in two stages, and throttling in two steps.

The heat of writing warms the cells, which warm the case, which the air cools. At TMT1 the drive halves its pace a little, at TMT2 a lot,
and takes it back three degrees lower. Its counters count what an NVMe drive's do."""

from __future__ import annotations

from dataclasses import dataclass, field

LIGHT, HEAVY = 0.7, 0.35  # pace at TMT1 and at TMT2
HYSTERESIS_K = 3.0
REFILL_SHARE = 0.2  # of its own pace, at which an idle drive empties its cache into the cells
AIR_DEGC = 27.0


@dataclass(frozen=True)
class DriveSpec:
    """Rates in B/s. `write_amplification` slows the cells once every block has been written; `cache_bytes` 0: no cache (3D XPoint)."""

    name: str
    serial: str
    model: str
    firmware: str
    wwn: str
    size_bytes: int
    cache_bytes: float
    cache_rate: float
    cell_rate: float
    write_amplification: float
    idle_w: float
    w_per_gb_per_s: float
    to_case_k_per_w: float
    to_air_k_per_w: float
    cells_j_per_k: float
    case_j_per_k: float
    warning_degc: int
    critical_degc: int
    tmt1_degc: int  # 0: it never throttles by itself below its critical temperature
    tmt2_degc: int
    transport: str = "nvme"
    link: str = "32.0 GT/s PCIe x4"
    life_bytes: float = 0.0  # that it takes until its life is used up; 0: nobody counts

    @property
    def steady_rate(self) -> float:
        return self.cell_rate / self.write_amplification

    def made(self) -> Drive:
        return Drive(self)


@dataclass
class Drive:
    spec: DriveSpec
    cells_degc: float = AIR_DEGC + 8
    case_degc: float = AIR_DEGC + 5
    cache_left: float = 0.0
    since_purge_bytes: float = 0.0
    written_bytes: float = 0.0
    read_bytes: float = 0.0
    level: int = 0
    transitions: list[int] = field(default_factory=lambda: [3, 1])  # to TMT1 and TMT2, in its life
    throttled_s: list[int] = field(default_factory=lambda: [120, 20])
    warning_s: int = 0
    present: bool = True

    def __post_init__(self) -> None:
        self.cache_left = self.spec.cache_bytes

    def purge(self) -> None:
        self.since_purge_bytes, self.cache_left = 0.0, self.spec.cache_bytes

    def pace(self) -> float:
        """The most that it can take in the coming second, B."""
        if not self.present:
            return 0.0
        spec = self.spec
        slow = spec.steady_rate if self.since_purge_bytes >= spec.size_bytes else spec.cell_rate
        fast = max(spec.cache_rate, slow)
        share = min(1.0, self.cache_left / fast) if spec.cache_bytes else 0.0
        return (share * fast + (1 - share) * slow) * (1.0, LIGHT, HEAVY)[self.level]

    def second(self, written: float, read: float, foreign_w: float, air_factor: float) -> None:
        """One second in which it takes and gives so many bytes, beside `foreign_w` of heat from elsewhere."""
        spec = self.spec
        self.written_bytes += written
        self.read_bytes += read
        self.since_purge_bytes += written
        if spec.cache_bytes:
            spare = REFILL_SHARE * max(0.0, spec.cell_rate - written)
            self.cache_left = min(spec.cache_bytes, max(0.0, self.cache_left - written) + spare)
        power = spec.idle_w + spec.w_per_gb_per_s * (written + 0.4 * read) / 1e9
        to_case = (self.cells_degc - self.case_degc) / spec.to_case_k_per_w
        to_air = (self.case_degc - AIR_DEGC) / (spec.to_air_k_per_w * air_factor)
        self.cells_degc += (power + foreign_w - to_case) / spec.cells_j_per_k
        self.case_degc += (to_case - to_air) / spec.case_j_per_k
        self._throttle()

    def _throttle(self) -> None:
        spec, before = self.spec, self.level
        if spec.tmt2_degc and self.cells_degc >= spec.tmt2_degc:
            self.level = 2
        elif spec.tmt1_degc and self.cells_degc >= spec.tmt1_degc:
            self.level = max(self.level, 1)
        if self.level == 2 and self.cells_degc < spec.tmt2_degc - self._release_k:
            self.level = 1
        if self.level == 1 and self.cells_degc < spec.tmt1_degc - self._release_k:
            self.level = 0
        if self.level > before:
            self.transitions[self.level - 1] += 1
        if self.level:
            self.throttled_s[self.level - 1] += 1
        self.warning_s += self.cells_degc >= spec.warning_degc

    @property
    def _release_k(self) -> float:
        return HYSTERESIS_K

    @property
    def percentage_used(self) -> int:
        """Returns the used part of its life in whole percent, as it counts: one was used when it was bought."""
        return 1 + (int(100 * self.written_bytes / self.spec.life_bytes) if self.spec.life_bytes else 0)

    @property
    def composite_degc(self) -> int:
        """Returns what it says of itself: whole degrees, as NVMe has them."""
        return round(self.cells_degc)
