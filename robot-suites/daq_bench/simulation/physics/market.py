"""Servers drawn from what is sold. Every figure has its source beside it; one without (`~`) is drawn wide.

A seed draws a class of target, then the drive among those that are sold for it, how many, what stands between them and the processor, the
cooling, and what befalls the run. Nothing of it knows the bench's bounds, but for the demand that a buyer reads beside a data sheet's rate
(`READ_THE_SHEET`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

from daq_bench.simulation.physics.drawing import (
    COOLING,
    DEMAND,
    MARKET,
    SEVERAL,
    Group,
    Spec,
    compares,
    cooled,
    data_drives,
    in_soak,
    kinds_of,
    soaks,
    takes_raw_drives,
    wears,
)
from daq_bench.simulation.physics.hazards import Hazard, drawn
from daq_bench.simulation.physics.sold_drive import SoldSpec

TB = 10**12
SET_BYTES_MAX = 250 * TB
DRIVES_MAX = 24  # of one server: Dell R740xd has 12, Supermicro 2124US-TNRP and R7725xd 24 (fasterdata.es.net/DTN, storagereview.com)
RECORDS = 6  # of snb-100s: three in each condition
# How often a class of target is drawn. Shares of real purchases are not known: each class has enough to be counted.
KINDS_OF_TARGET = {
    "single": 22, "raw": 22, "raid0": 22, "raid5": 12, "raid6": 10, "raid10": 12,
}  # fmt: skip
LEVELS: dict[str, int | None] = {"single": None, "raw": None, "raid0": 0, "raid5": 5, "raid6": 6, "raid10": 10}
DRIVES_MIN = {"single": 1, "raw": 1, "raid0": 2, "raid5": 3, "raid6": 4, "raid10": 4}
READ_THE_SHEET = 0.75  # of the buyers: they take only what by its data sheet is so much above the demand
SHEET_FACTOR = 1.05
NO_HAZARD = 0.6  # of the runs
EXT4_SHARE, EXT4_BYTES_MAX = 0.2, 50 * TB  # RHEL 9 supports ext4 to 50 TB (docs.redhat.com)
NO_ZEROS_SHARE = 0.1  # ~ of raw drives read anything where they were discarded (NVMe DLFEAT allows it)
LINKS = {3: "8.0 GT/s PCIe x4", 4: "16.0 GT/s PCIe x4", 5: "32.0 GT/s PCIe x4", 6: "64.0 GT/s PCIe x4", 0: ""}
READ_RATE = {3: 3.2e9, 4: 6.8e9, 5: 13e9, 6: 26e9, 0: 2.1e9}  # ~ B/s that a drive gives: most fill their link
UPLINK = {3: 13e9, 4: 26e9, 5: 52e9, 6: 104e9}  # ~ B/s of a switch's x16
SWITCHED_SHARE = 0.3  # ~ of sets stand behind switches, one for at most 12 drives
HBA_RATES = (6.4e9, 13e9, 26e9)  # ~ B/s of SAS controllers at x8 Gen 3, x8 Gen 4, x16 Gen 4
# One thread of md's parity RAID writes ~2 to 8 GB/s, several (group_thread_cnt) two to three times as much; half of the buyers set them.
PARITY_RATE, PARITY_THREADS, THREADED_SHARE = (2e9, 8e9), (2.0, 3.0), 0.5
SPREAD = (0.95, 1.03)  # ~ of specimens about a figure that has a source
WIDE = (0.75, 1.2)  # about one that has none
SLOWER_WHEN_FULL = (1.0, 1.5)  # ~ sequential, fresh over full; a data sheet mostly states the full drive's
SAW_DEPTH, SAW_PERIOD_S = (0.0, 0.15), (1.0, 30.0)  # ~ 3 to 15 %, some seconds to half a minute: drawn from none on
LIGHT, HEAVY = (0.7, 0.9), (0.1, 0.5)  # ~ what is left of the pace; "often to half rate" (softperten.de)
RELEASE_K = (2.0, 5.0)  # ~
WARNING_DEGC = (70, 84)  # as seen: Intel P5520 70/80, Samsung PM9A3 80/83, 980 PRO 82/85 (Identify, techpowerup.com)


@dataclass(frozen=True)
class Model:
    """One line of the catalogue. `gbs`: sequential writing of each capacity by its data sheet, or of all. `sourced`: of the rate."""

    name: str
    medium: str
    tb: tuple[float, ...]
    gen: int  # of PCI Express; 0: SAS
    gbs: tuple[float, ...]
    sourced: bool
    watts: tuple[float, float]  # active, idle
    source: str
    degc: tuple[int, int] | None = None  # its warning and critical temperature
    cached: tuple[float, float, float] | None = None  # GB/s in its dynamic cache, the cache's share, GB/s while folding

    def rate(self, tb: float) -> float:
        return 1e9 * (self.gbs[self.tb.index(tb)] if len(self.gbs) > 1 else self.gbs[0])


OPTANE, TLC, QLC, SAS, CONSUMER = "3D XPoint", "TLC", "QLC", "SAS TLC", "TLC or QLC with a dynamic cache"
MEDIA = (OPTANE, TLC, QLC, SAS, CONSUMER)
# Drive writes of a life: ~ 60 or 1 a day for five years; 600 TBW for each TB, but 200 of a P1 (techpowerup.com) and 220 of a P3 (the same)
DRIVE_WRITES = {OPTANE: 60 * 1825, TLC: 1825, QLC: 900, SAS: 1825, CONSUMER: 600, "P1": 200, "P3": 220}
# ~ of the sequential rate that 4 KiB at random places keep in steady state: 3D XPoint nearly all, QLC with its larger pages hardly any
RANDOM_SHARE = {OPTANE: (0.6, 0.95), TLC: (0.1, 0.3), QLC: (0.005, 0.05), SAS: (0.1, 0.3), CONSUMER: (0.02, 0.1)}
# Capacities are those of 0.48 to 30.72 TB alone. Watts without a source of their own are of the class (~).
CATALOGUE = (
    Model("X100", OPTANE, (0.75,), 3, (9.2,), True, (30, 14), "techspot.com/news/82509: more than 9 GB/s"),
    Model("P4800X", OPTANE, (0.75, 1.5), 3, (2.0,), True, (15, 6), "anandtech.com/show/11930"),
    Model("P5800X", OPTANE, (0.8, 1.6, 3.2), 4, (6.2,), True, (18, 5), "blog.zuthof.nl/?p=2911"),
    Model("FL6", OPTANE, (0.8, 1.6, 3.2), 4, (5.8,), True, (14, 5), "edgedatacenters.nl 2021/09/20; XL-Flash, one bit a cell"),
    Model("PM9A3", TLC, (0.96, 1.92, 3.84, 7.68), 4, (4.0,), False, (14, 4), "linux-raid 2024-08-06: watts, degC", (80, 83)),
    Model("PM1743", TLC, (1.92, 3.84, 7.68, 15.36), 5, (6.6,), True, (25, 6), "hardwaretimes.com (PM1743)"),
    Model("PM9D3a", TLC, (1.92, 3.84, 7.68, 15.36, 30.72), 5, (6.8,), True, (20, 5), "anandtech.com/show/21526"),
    Model("PM1753", TLC, (3.84, 7.68, 15.36, 30.72), 5, (11.0,), True, (25, 6), "anandtech.com/show/21526"),
    Model("9200", TLC, (1.6, 3.2, 6.4), 3, (3.5,), True, (25, 8), "vdocument.in (9200 data sheet)"),
    Model("7400", TLC, (0.96, 1.92, 3.84, 7.68), 4, (5.4,), True, (22, 5), "hardwaretimes.com (7400)"),
    Model("7450", TLC, (0.48, 0.96, 1.92, 3.84, 7.68, 15.36), 4, (0.7, 1.4, 5.6, 5.6, 5.6, 5.6), True, (17, 5), "servethehome ?p=59563"),
    Model("7500", TLC, (0.96, 1.92, 3.84, 7.68, 15.36), 4, (5.9,), True, (17, 5), "techtarget.com 366555677"),
    Model("9400", TLC, (6.4, 7.68, 15.36, 30.72), 4, (7.0,), True, (21, 7), "computerbase.de/2023-01 (9400): 7 at every size"),
    Model("9550", TLC, (3.2, 3.84, 6.4, 7.68, 12.8, 15.36, 30.72), 5, (10.0,), True, (18, 5), "supersalezone.store 2025/07/30"),
    Model("9650", TLC, (6.4, 7.68, 12.8, 15.36, 30.72), 6, (14.0,), True, (25, 5), "rss.mirtouf.fr"),
    Model("6500 ION", TLC, (30.72,), 4, (5.0,), False, (20, 5), "sportingrareart.com (6500)"),
    Model("CM6", TLC, (0.96, 1.6, 1.92, 3.2, 3.84, 6.4, 7.68, 12.8, 15.36, 30.72), 4, (4.2,), True, (18, 5), "heise.de 4666097"),
    Model("CD6", TLC, (0.96, 1.92, 3.84, 7.68, 15.36), 4, (4.0,), True, (18, 5), "heise.de 4666097"),
    Model("CD8", TLC, (0.96, 1.92, 3.84, 7.68, 15.36), 5, (6.0,), True, (19, 5), "computerbase.de/2022-03 (CD8)"),
    Model("CM7", TLC, (1.6, 1.92, 3.2, 3.84, 6.4, 7.68, 12.8, 15.36, 30.72), 5, (7.0,), True, (25, 5), "xinnor.io/blog (Kioxia PCIe 5.0)"),
    Model("P5500", TLC, (1.6, 1.92, 3.2, 3.84, 6.4, 7.68), 4, (4.3,), True, (20, 5), "ilsoftware.it 21379"),
    Model("P5520", TLC, (1.92, 3.84, 7.68, 15.36), 4, (4.2,), False, (25, 5), "Identify of SSDPF2KX019T1M: watts, degC", (70, 80)),
    Model("PS1010", TLC, (1.92, 3.84, 7.68, 15.36), 5, (9.5,), False, (23, 5), "none (~)"),
    Model("P4500", TLC, (1.0, 2.0, 4.0), 3, (0.6, 1.05, 1.8), True, (16, 5), "Lenovo 4XB7A08539 guide"),
    Model("P4600", TLC, (1.6, 3.2, 6.4), 3, (1.4, 2.1, 3.0), False, (25, 5), "TKperf#25: watts, degC", (70, 80)),
    Model("P5316", QLC, (15.36, 30.72), 4, (3.6,), False, (25, 5), "smd-chip.com (P5316): watts"),
    Model("P5336", QLC, (7.68, 15.36, 30.72), 4, (3.2,), True, (25, 5), "hwcooling.net (122 TB)"),
    Model("P5430", QLC, (3.84, 7.68, 15.36, 30.72), 4, (3.0,), False, (25, 5), "none (~)"),
    Model("6600 ION", QLC, (30.72,), 5, (3.0,), True, (25, 5), "storagereview.com/news/from-245tb-density"),
    Model("PM1645a", SAS, (0.8, 1.6, 3.2, 6.4), 0, (2.0,), False, (12, 4), "manualsee.com (PM1645a): sizes; 2 GB/s ~"),
    Model("980 PRO", CONSUMER, (1.0, 2.0), 4, (1.5,), True, (6, 1), "techpowerup.com/review/samsung-980-pro", (82, 85), (4.0, 0.11, 1.0)),
    Model("P44 Pro", CONSUMER, (1.0, 2.0), 4, (1.75,), True, (7, 1), "guru3d.com (P44 Pro); folding ~", None, (5.7, 0.38, 1.0)),
    Model("NM790", CONSUMER, (1.0, 2.0, 4.0), 4, (2.5,), True, (7, 1), "techpowerup.com/review (NM790)", None, (5.0, 0.14, 0.8)),
    Model("NM800 Pro", CONSUMER, (1.0, 2.0), 4, (2.2,), True, (7, 1), "techpowerup.com/review (NM800 Pro)", None, (3.5, 0.30, 1.0)),
    Model("T500", CONSUMER, (1.0, 2.0), 4, (0.5,), True, (6, 1), "techpowerup.com/review (T500)", None, (4.0, 0.35, 0.5)),
    Model("P1", CONSUMER, (1.0,), 3, (0.15,), True, (5, 1), "techpowerup.com/review (Crucial P1, QLC)", None, (1.6, 0.14, 0.06)),
    Model("P3", CONSUMER, (1.0, 2.0, 4.0), 3, (0.1,), True, (5, 1), "techpowerup.com (crucial-p1/6); QLC", None, (3.0, 0.28, 0.08)),
)  # fmt: skip


def sectors_of(tb: float) -> int:
    """512 B sectors of a drive sold as so many TB (SFF-8447)."""
    return 97_696_368 + 1_953_504 * (round(1000 * tb) - 50)


def bought(seed: int, scenario: str = MARKET) -> Spec:
    """The server of a seed, with a target of a kind that the scenario allows, and what befalls its run."""
    random = Random(f"{scenario} {seed}")
    if compares(scenario):
        return _beside_a_reference(random, seed, scenario)
    kinds = kinds_of_target(scenario)
    kind = random.choices(kinds, [KINDS_OF_TARGET[one] for one in kinds])[0]
    level, reads = LEVELS[kind], random.random() < READ_THE_SHEET
    model, tb, count = _chosen(random, kind, reads)
    one = _drive(random, model, tb)
    room = random.uniform(*COOLING[random.choices(tuple(COOLING), (85, 15))[0]])
    one = _cooled(one, room)
    if wears(scenario):
        one = replace(one, life_bytes=DRIVE_WRITES.get(model.name, DRIVE_WRITES[model.medium]) * one.size_bytes)
    drives = tuple(_numbered(random, one, number) for number in range(count))
    capacity = 512 * sectors_of(tb) * data_drives(level, count)
    ext4 = random.random() < EXT4_SHARE and capacity <= EXT4_BYTES_MAX
    parity = _parity(random)
    return replace(
        _server(random, seed, reads, drives, level, scenario),
        medium=model.medium,
        raw=kind == "raw",
        raid=level or 0,
        filesystem="ext4" if ext4 else "xfs",
        ceiling=_ceiling(random, model, count),
        parity_rate=parity if level in (5, 6) else 0.0,
        zero_share=0.0 if random.random() < NO_ZEROS_SHARE else 1.0,
        discards=level not in (5, 6),  # md refuses it unless devices_handle_discard_safely (torvalds/linux 8e0e99ba)
        random_share=random.uniform(*RANDOM_SHARE[model.medium]),
        read_rate=READ_RATE[model.gen] * random.uniform(*WIDE),
    )


def _beside_a_reference(random: Random, seed: int, scenario: str) -> Spec:
    """A 3D XPoint drive, and a set of others that three layouts are made of (raid-vs-3dxp.yml)."""
    reads = random.random() < READ_THE_SHEET
    models = [one for one in CATALOGUE if one.medium == OPTANE]
    own = random.choice(models)
    medium = random.choice([one for one in MEDIA if one != OPTANE])
    model, tb, count = _chosen(random, "raid5", reads, medium)
    first = _numbered(random, _cooled(_drive(random, own, random.choice(own.tb)), random.uniform(*COOLING["ample"])), 0)
    one = _cooled(_drive(random, model, tb), random.uniform(*COOLING[random.choices(tuple(COOLING), (85, 15))[0]]))
    drives = (first, *(_numbered(random, one, number) for number in range(1, count + 1)))
    ceiling = _ceiling(random, model, count)
    parity = _parity(random)
    members = tuple(range(1, count + 1))
    return replace(
        _server(random, seed, reads, drives, 0, scenario),
        medium=model.medium,
        sets=(
            Group("nand-raid0", members, 0, ceiling, chunk="128KiB"),
            Group("nand-raid0-512k", members, 0, ceiling, chunk="512KiB"),
            Group("nand-raid5", members, 5, ceiling, parity, chunk="128KiB"),
        ),
    )


def _server(
    random: Random, seed: int, reads: bool, drives: tuple[SoldSpec, ...], level: int | None, scenario: str
) -> Spec:
    """What stands about the drives, and what befalls the run. Each draw keeps its place: published tables name seeds."""
    return Spec(
        seed=seed,
        name="simulated",
        pace="sheet" if reads else "any",
        drives=drives,
        transient_buffer=random.choice(("6GiB", "8GiB", "16GiB")),
        memory_bytes=random.choice((64, 128, 256, 512)) * 2**30,
        base_w=random.uniform(180, 420),
        hazards=_hazards(random, len(drives), level, scenario),
    )


def _parity(random: Random) -> float:
    threads = random.uniform(*PARITY_THREADS) if random.random() < THREADED_SHARE else 1.0
    return random.uniform(*PARITY_RATE) * threads


def kinds_of_target(scenario: str) -> tuple[str, ...]:
    """The soak and the wear experiment need a file, steady state and saturation a whole drive; snb-100s takes both."""
    if takes_raw_drives(scenario):
        return ("raw",)
    return tuple(kind for kind in KINDS_OF_TARGET if not (kind == "raw" and (soaks(scenario) or wears(scenario))))


def _chosen(random: Random, kind: str, reads: bool, asked: str = "") -> tuple[Model, float, int]:
    """The medium first (`asked`, or any), then a drive of it, its capacity, and how many; a buyer who reads data sheets draws again where
    it is slow."""
    while True:
        medium = asked or random.choice(MEDIA)
        model = random.choice([one for one in CATALOGUE if one.medium == medium])
        tb = random.choice(model.tb)
        least, level = DRIVES_MIN[kind], LEVELS[kind]
        most = 1 if level is None else min(DRIVES_MAX, int(SET_BYTES_MAX / TB / tb))
        if most < least:
            continue
        count = round(math.exp(random.uniform(math.log(least), math.log(most))))
        count += count % 2 if level == 10 else 0
        if not reads or data_drives(level, count) * model.rate(tb) >= SHEET_FACTOR * DEMAND:
            return model, tb, count


def _drive(random: Random, model: Model, tb: float) -> SoldSpec:
    flat = model.medium == OPTANE
    rate = model.rate(tb) * random.uniform(*(SPREAD if model.sourced else WIDE))
    # Most state the rate of a full drive; one in five falls later (TKperf#35: 2.2 GB/s, and 1.6 to 1.7 after half an hour).
    falls = random.random() < 0.2 and not flat
    amplification = random.uniform(*SLOWER_WHEN_FULL) if falls else 1.0
    warning, critical = model.degc or (degc := random.randint(*WARNING_DEGC), degc + random.choice((3, 5, 8, 10)))
    cached = model.cached
    bits = 4 if model.name in ("P1", "P3") or model.medium == QLC else 3
    throttles = random.random() < 0.8
    return SoldSpec(
        name="", serial="", wwn="",
        model=f"SIM {model.name}",
        firmware=random.choice(("E2MU200", "GDC7302Q", "1.0.7")),
        size_bytes=512 * sectors_of(tb),
        cache_bytes=0.0,
        cache_rate=1e9 * cached[0] if cached else 0.0,
        cell_rate=rate,
        write_amplification=amplification,
        idle_w=model.watts[1],
        w_per_gb_per_s=(model.watts[0] - model.watts[1]) / (cached[0] if cached else model.rate(tb) / 1e9),
        to_case_k_per_w=random.uniform(0.3, 0.7),  # ~
        to_air_k_per_w=1.0,
        cells_j_per_k=random.uniform(20, 60),  # ~
        case_j_per_k=random.uniform(40, 160),  # ~
        warning_degc=critical if model.gen == 0 else warning,  # SAS states one limit
        critical_degc=critical,
        tmt1_degc=warning - random.choice((0, 2, 4)) if throttles else 0,
        tmt2_degc=warning + 2 if throttles else 0,
        transport="nvme" if model.gen else "sas",
        link=LINKS[model.gen],
        bits=bits,
        saw_depth=0.0 if flat else random.uniform(*SAW_DEPTH),
        saw_period_s=random.uniform(*SAW_PERIOD_S),
        cache_share=cached[1] if cached else 0.0,
        fold_rate=1e9 * cached[2] if cached else 0.0,
        refill_share=random.choice((0.0, 0.2, 0.5, 1.0)),  # nothing in 4 min (pynv.me P41 Plus) to within seconds (980 PRO)
        light=random.uniform(*LIGHT),
        heavy=random.uniform(*HEAVY),
        release_k=random.uniform(*RELEASE_K),
    )  # fmt: skip


def _cooled(one: SoldSpec, room_k: float) -> SoldSpec:
    """So that steady writing at its full pace, of its cache if it has one, leaves it `room_k` below its own warning temperature."""
    found = cooled(one, room_k, 0, max(one.steady_rate, one.cache_rate))
    assert isinstance(found, SoldSpec)
    return found


def _numbered(random: Random, one: SoldSpec, number: int) -> SoldSpec:
    name = f"nvme{number}n1" if one.transport == "nvme" else f"sd{chr(ord('a') + number)}"
    serial = f"SIM{random.randrange(16**8):08X}"
    return replace(one, name=name, serial=serial, wwn=f"eui.{random.randrange(16**16):016x}", saw_phase=random.random())


def _ceiling(random: Random, model: Model, count: int) -> float:
    if model.gen == 0:
        return random.choice(HBA_RATES) * (2 if count > 8 and random.random() < 0.5 else 1)
    if count > 1 and random.random() < SWITCHED_SHARE:
        return UPLINK[model.gen] * math.ceil(count / 12)
    return 0.0


def _hazards(random: Random, drives: int, level: int | None, scenario: str) -> tuple[Hazard, ...]:
    draw = random.random()
    if draw < NO_HAZARD:
        return ()
    number = random.randint(2, 3) if draw > 1 - SEVERAL / 2 else 1
    goes_on = level not in (None, 0)  # without a drive that is pulled
    kinds = [kind for kind in kinds_of(scenario) if kind != "drive_pulled" or not goes_on]
    found = [drawn(random, kind, drives) for kind in random.sample(kinds, number)]
    if soaks(scenario):
        return tuple(map(in_soak, found))
    return tuple(one if one.record == 0 else replace(one, record=random.randint(1, RECORDS)) for one in found)
