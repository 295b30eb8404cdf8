"""A drive as it is sold: its data sheet's rate, a dynamic cache of cells that hold one bit, folding, collecting that saws, heat.

The three stages of a dynamic cache (techpowerup.com's write tests, one page for each model: cached, direct, folding): free cells take one
bit each and are fast; when the cache's share of what is free is used up, data go straight to where they stay; when nothing is free
either, the cache is emptied while data arrive, which is slowest. A drive that is full has its spare cells alone, and collects."""

from __future__ import annotations

from dataclasses import dataclass, field

from daq_bench.simulation.physics.drive import Drive, DriveSpec


@dataclass(frozen=True)
class SoldSpec(DriveSpec):
    """`cell_rate`: straight to where data stay. `saw_depth`: share of the rate that collecting takes at its worst, once every block has
    been written; `saw_period_s`, `saw_phase`: of its tooth. `cache_share`: of what is free, in cells of one bit; `fold_rate` while the
    cache is emptied, `refill_share` of the rate at which an idle drive does so. `light`, `heavy`, `release_k`: of its throttling."""

    bits: int = 3  # of a cell: so many bytes as in one of one bit take its room where they stay
    spare_share: float = 0.07
    saw_depth: float = 0.0
    saw_period_s: float = 10.0
    saw_phase: float = 0.0
    cache_share: float = 0.0
    fold_rate: float = 0.0
    refill_share: float = 0.0
    light: float = 0.8
    heavy: float = 0.35
    release_k: float = 3.0

    def made(self) -> Drive:
        return SoldDrive(self)


@dataclass
class SoldDrive(Drive):
    """`cached_bytes`: in cells of one bit. `age_s`: since it was switched on."""

    spec: SoldSpec
    cached_bytes: float = 0.0
    folding: bool = False
    age_s: float = 0.0
    room: float = field(default=0.0, init=False)  # of the cache, when it began to fill

    def __post_init__(self) -> None:
        self.purge()

    def purge(self) -> None:
        self.since_purge_bytes, self.cached_bytes, self.folding = 0.0, 0.0, False
        self.room = self.spec.cache_share * self.spec.size_bytes

    @property
    def _mapped_bytes(self) -> float:
        """Returns how much holds data, as far as the drive knows."""
        return min(float(self.spec.size_bytes), self.since_purge_bytes)

    @property
    def _is_full(self) -> bool:
        return self.since_purge_bytes >= self.spec.size_bytes

    def pace(self) -> float:
        """The most that it can take in the coming second, B."""
        if not self.present:
            return 0.0
        spec = self.spec
        return self._of_cells() * (1.0, spec.light, spec.heavy)[self.level]

    def _of_cells(self) -> float:
        spec = self.spec
        direct = spec.cell_rate
        if self._is_full:
            tooth = (self.age_s / spec.saw_period_s + spec.saw_phase) % 1.0
            direct = spec.steady_rate * (1.0 + spec.saw_depth / 2 - spec.saw_depth * tooth)
        if not spec.cache_share:
            return direct
        if self.folding:
            return min(spec.fold_rate, direct)
        share = min(1.0, max(0.0, self.room - self.cached_bytes) / spec.cache_rate)
        return share * max(spec.cache_rate, direct) + (1 - share) * direct

    def second(self, written: float, read: float, foreign_w: float, air_factor: float) -> None:
        """One second, as of any drive; the cache fills, folds and empties."""
        self.age_s += 1.0
        if self.spec.cache_share:
            self._cache(written)
        super().second(written, read, foreign_w, air_factor)

    def _cache(self, written: float) -> None:
        spec = self.spec
        if self.folding:
            self.cached_bytes = max(0.0, self.cached_bytes - spec.fold_rate)
            self.folding = self.cached_bytes > 0
        else:
            self.cached_bytes += min(written, max(0.0, self.room - self.cached_bytes))
        idle = spec.refill_share * max(0.0, spec.cell_rate - written)
        self.cached_bytes = max(0.0, self.cached_bytes - idle)
        if not self.cached_bytes:
            self.room = spec.cache_share * max(0.0, spec.size_bytes - self._mapped_bytes)
        free = spec.size_bytes * (1 + spec.spare_share) - self._mapped_bytes
        if self.cached_bytes and free < (spec.bits - 1) * self.cached_bytes:
            self.folding = True

    @property
    def _release_k(self) -> float:
        return self.spec.release_k
