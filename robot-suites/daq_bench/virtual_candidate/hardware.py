"""The parts of the virtual candidate: drives, fans and sensors, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

RPM_PER_DUTY = 100  # a fan's speed at one percent of duty; full speed is 10000 RPM


@dataclass(frozen=True)
class Drive:
    """An emulated NVMe drive. `bay` is the sensor of the drive bay that it sits in."""

    serial: str
    size_bytes: int
    block_bytes: int
    numa_node: int
    bay: str


@dataclass(frozen=True)
class Sensor:
    """A sensor of the BMC; its value, in `unit`, is the integer in the file `file`."""

    number: int
    name: str  # ipmi_sim garbles short names in capitals only: Fan1, not FAN1
    kind: str  # sensor type in sdrcomp's words
    unit: str
    value: int
    entity: int
    step: int = 1  # value of one count of the raw 8-bit reading
    thresholds: dict[str, int] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return self.name.replace(" ", "_")


@dataclass(frozen=True)
class Fan:
    """A fan and the zone whose duty it follows, as on a Supermicro board: 0 cools the CPUs, 1 the peripherals."""

    name: str
    zone: int


@dataclass(frozen=True)
class FanMode:
    """The duties at which the BMC's automatic control holds the two zones, in percent."""

    name: str
    code: int
    duties: tuple[int, int]


def drives(size_bytes: int = 2 * 10**9) -> tuple[Drive, ...]:
    """The drives of the default candidate: one that acts as the 3D XPoint reference, three for a RAID set."""
    whole = size_bytes // 4096 * 4096
    return (
        Drive("VCXP0001", whole, 4096, 0, "Bay1 Temp"),
        Drive("VCNA0001", whole, 512, 0, "Bay2 Temp"),
        Drive("VCNA0002", whole, 512, 1, "Bay3 Temp"),
        Drive("VCNA0003", whole, 512, 1, "Bay4 Temp"),
    )


FANS = (Fan("Fan1", 0), Fan("Fan2", 0), Fan("FanA", 1), Fan("FanB", 1))

# Codes: Supermicro's fan modes (the web interface's names and ipmitool raw 0x30 0x45, X9 to H12 boards).
DEFAULT_VENDOR = "supermicro"  # here, since the power switch reads no file of vendors
FAN_MODES = (
    FanMode("standard", 0x00, (50, 50)),
    FanMode("full", 0x01, (100, 100)),
    FanMode("optimal", 0x02, (30, 30)),
    FanMode("heavy-io", 0x04, (50, 75)),
)
DEFAULT_FAN_MODE = FAN_MODES[0]

INLET = "Inlet Temp"
POWER = "Pwr Consumption"

# Entity ids: IPMI 2.0 specification, table 43-13.
_INLET, _PROCESSOR, _BAY, _FAN, _SUPPLY = 0x37, 0x03, 0x0F, 0x1D, 0x0A
_CELSIUS = ("Temperature", "degrees_C")


def _fan(number: int, fan: Fan) -> Sensor:
    rpm = DEFAULT_FAN_MODE.duties[fan.zone] * RPM_PER_DUTY
    return Sensor(number, fan.name, "Fan", "RPM", rpm, _FAN, RPM_PER_DUTY, {"lnc": 1500, "lc": 1000})


SENSORS = (
    Sensor(1, INLET, *_CELSIUS, 24, _INLET, 1, {"unc": 40, "uc": 45}),
    Sensor(2, "CPU1 Temp", *_CELSIUS, 48, _PROCESSOR, 1, {"unc": 85, "uc": 95}),
    Sensor(3, "CPU2 Temp", *_CELSIUS, 47, _PROCESSOR, 1, {"unc": 85, "uc": 95}),
    Sensor(4, "Bay1 Temp", *_CELSIUS, 36, _BAY, 1, {"unc": 70, "uc": 80}),
    Sensor(5, "Bay2 Temp", *_CELSIUS, 38, _BAY, 1, {"unc": 70, "uc": 80}),
    Sensor(6, "Bay3 Temp", *_CELSIUS, 39, _BAY, 1, {"unc": 70, "uc": 80}),
    Sensor(7, "Bay4 Temp", *_CELSIUS, 38, _BAY, 1, {"unc": 70, "uc": 80}),
    *(_fan(number, fan) for number, fan in enumerate(FANS, start=8)),
    Sensor(12, POWER, "Current", "Watts", 420, _SUPPLY, 4),
)


def sensor(name: str) -> Sensor:
    """The sensor called `name`; KeyError when there is none."""
    return {each.name: each for each in SENSORS}[name]
