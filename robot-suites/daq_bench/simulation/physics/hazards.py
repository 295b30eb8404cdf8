"""The hazards of which the bench is not told: what each does, and how hard. A seed draws them; some are too weak to do harm.

`record`: during which record it happens (1 is the first); 0: during the whole run. `at_s`: since that record's begin."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

RECORDS = 3


@dataclass(frozen=True)
class Hazard:
    """`strength` is in the kind's own unit, as in `STRENGTHS`; `drive` is the place of the drive that it is about."""

    kind: str
    record: int
    at_s: float
    length_s: float
    strength: float
    drive: int


# Kind -> (least, most) strength, and in what. Each range begins where the hazard does no harm to an ordinary candidate.
STRENGTHS: dict[str, tuple[float, float]] = {
    "throttle_once": (0, 60),  # W of foreign heat into one drive
    "throttle_recurring": (0, 60),
    "throttle_creeping": (0, 60),
    "throttle_from_start": (0, 50),
    "drive_pulled": (1, 1),
    "bit_flips": (0, 40),  # places in the stored data; those in padding harm nobody
    "torn_writes": (0, 12),  # blocks
    "lost_writes": (0, 12),
    "misplaced_writes": (0, 12),  # superchunks out of their order
    "slow_drive": (0.01, 0.5),  # share of the drive's rate that is missing
    "wrong_numa_node": (0.01, 0.3),  # share of the array's rate
    "governor_reset": (0.0, 0.06),  # share of the source's pace
    "sysctl_reset": (1, 1),
    "fan_failure": (1.0, 5.0),  # factor of the thermal resistance to the air
    "bmc_hangs": (5, 400),  # s
    "bmc_zero_watts": (1, 1),
    "bmc_sensor_stuck": (1, 1),
    "drive_sensor_stuck": (1, 1),
    "hot_sensor_stuck": (20, 90),  # W of foreign heat, which the drive's stuck sensor does not show
    "drive_sensor_silent": (3, 120),  # s
    "clock_step": (-30, 30),  # s
    "agent_silent": (1, 60),  # s
    "influxdb_down": (1, 1),
    "network_cut": (1, 1),
    "control_disk_full": (1, 1),
    "power_cut": (1, 1),
    "swapped_drive": (1, 1),
    "swapped_after_preflight": (1, 1),
    "counterfeit_serial": (1, 1),
    "counterfeit_slow": (0.0, 0.5),  # share of the rate: the label is perfect, the drive is not
    "firmware_changed": (1, 1),  # during the run
    "clock_offset": (-30, 30),  # s, from the beginning: nobody sees it step
    "trailer_lost": (1, 1),  # the last block of a record that was written as complete
    "short_record": (0.0, 0.3),  # share of its time that the writer leaves out, and calls the record complete
    "less_asked": (0.0, 0.9),  # share of the load that whoever started the run left out, and said so
    "unrecorded": (0, 4),  # which of the bench's own read-backs never reached the bundle
    "mixed_up": (1, 1),  # the document on the drives' sensors is that of another server
    "members_unknown": (1, 1),  # the array does not say which drives it is made of
    "other_load": (0.0, 0.4),  # share of the array's rate that another process writes
}
# Never drawn, so that the populations whose results are published stay as they are: tests ask for them.
UNDRAWN: dict[str, tuple[float, float]] = {
    "other_cpu": (0.0, 1.0),  # share of all CPUs that another process takes; the bench's writer has what is left
    "other_device": (
        0.0,
        1.0,
    ),  # share of the array's rate that another process writes to a drive which is no part of it
}
KINDS = tuple(STRENGTHS)
WHOLE_RUN = (
    "throttle_from_start", "slow_drive", "wrong_numa_node", "bmc_zero_watts", "bmc_sensor_stuck", "drive_sensor_stuck",
    "influxdb_down", "swapped_drive", "counterfeit_serial", "counterfeit_slow", "swapped_after_preflight", "firmware_changed",
    "clock_offset", "less_asked", "unrecorded", "mixed_up", "members_unknown",
)  # fmt: skip


def drawn(random: Random, kind: str, drives: int) -> Hazard:
    low, high = STRENGTHS[kind]
    record = 0 if kind in WHOLE_RUN else random.randint(1, RECORDS)
    return Hazard(
        kind=kind,
        record=record,
        at_s=round(random.uniform(2, 85), 1),
        length_s=round(random.uniform(5, 60), 1),
        strength=round(random.uniform(low, high), 4),
        drive=random.randrange(drives),
    )
