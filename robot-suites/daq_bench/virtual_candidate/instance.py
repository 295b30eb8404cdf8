"""The places of one virtual candidate's files and ports. Written down in `instance.json`, from which everything else starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate.files import read_json, write_json
from daq_bench.virtual_candidate.hardware import DEFAULT_VENDOR, Drive, drives

DEFAULT_NAME = "virtual"
DEFAULT_BASE = Path(__file__).resolve().parents[3] / "build" / "virtual"


@dataclass(frozen=True)
class Ports:
    """Ports, all on 127.0.0.1; `ipmi` is UDP, the others TCP. `system` is the BMC's end of the guest's KCS interface."""

    ssh: int = 22022
    ipmi: int = 9623
    redfish: int = 9443
    system: int = 9624


@dataclass(frozen=True)
class Instance:
    """One virtual candidate. Its state is below `base`/`name`, images and compiled plug-in are in `base`/cache."""

    base: Path = DEFAULT_BASE
    name: str = DEFAULT_NAME
    ports: Ports = field(default_factory=Ports)
    vendor: str = DEFAULT_VENDOR
    memory_mib: int = 2048
    drive_bytes: int = 2 * 10**9
    drives_directory: Path | None = None  # default: in the state directory; a folder on tmpfs makes the drives faster
    wired_to: str | None = None  # another candidate below `base`: a cable between their second interfaces, eth1
    image: Path | None = None  # folder of the guest's image; known when it is built

    @property
    def directory(self) -> Path:
        """Folder of the state: BMC, guest's root overlay, logs, process records."""
        return self.base / self.name

    @property
    def cache(self) -> Path:
        return self.base / "cache"

    @property
    def credentials(self) -> Path:
        """Folder of keys, certificates and password: `base` itself for the default instance, which the inventory points at."""
        return self.base if self.name == DEFAULT_NAME else self.directory

    @property
    def ssh(self) -> Path:
        """Folder with id_ed25519, known_hosts and the guest's host key."""
        return self.credentials / "ssh"

    @property
    def tls(self) -> Path:
        """Folder with ca.pem, which verifies the Redfish service."""
        return self.credentials / "tls"

    @property
    def password_file(self) -> Path:
        """File with the BMC's password, readable by its owner only."""
        return self.credentials / "bmc-password"

    @property
    def drive_files(self) -> Path:
        """Folder of the drives' contents; a name of its own below a folder that others may use too."""
        if self.drives_directory is None:
            return self.directory / "drives"
        return self.drives_directory / f"virtual-candidate-{self.name}"

    @property
    def drives(self) -> tuple[Drive, ...]:
        return drives(self.drive_bytes)

    def drive(self, serial: str) -> Drive:
        """The drive with that serial. Raises BenchError for a serial that no drive has."""
        found = next((drive for drive in self.drives if drive.serial == serial), None)
        if found is None:
            serials = ", ".join(drive.serial for drive in self.drives)
            raise BenchError(f"the virtual candidate has no drive {serial!r}. Its drives are {serials}")
        return found

    def drive_file(self, drive: Drive) -> Path:
        return self.drive_files / f"{drive.serial}.raw"

    def record(self, name: str) -> Path:
        """The file in which a process of this instance is written down."""
        return self.directory / f"{name}.process.json"

    def save(self) -> None:
        document = asdict(self)
        for name in _PATHS:
            document[name] = str(document[name]) if document[name] else None
        write_json(self.directory / "instance.json", document)


_PATHS = ("base", "drives_directory", "image")


def load(directory: Path) -> Instance | None:
    """The instance whose state is in `directory`; None when nothing is there."""
    document: dict[str, Any] | None = read_json(directory / "instance.json")
    if document is None:
        return None
    paths = {name: Path(document[name]) if document[name] else None for name in _PATHS}
    return Instance(**{**document, **paths, "ports": Ports(**document["ports"])})
