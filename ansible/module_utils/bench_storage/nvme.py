"""Reads the abilities of an NVMe drive from the structures that it returns. Pure.

The structures are taken raw (nvme-cli's --raw-binary): its JSON names and quotes the same fields differently from version
to version. Offsets: NVM Express Base Specification 2.0c, figures 275 (Identify Controller) and 298 (Sanitize Status);
NVM Command Set Specification 1.0c, figure 97 (Identify Namespace).
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ansible.module_utils.bench_storage.errors import StorageError

IDENTIFY_BYTES, SANITIZE_LOG_BYTES = 4096, 512
OACS_AT, SANICAP_AT = 256, 328
NLBAF_AT, FLBAS_AT, LBAF_AT, LBAF_BYTES = 25, 26, 128, 4
OACS_FORMAT = 1 << 1  # Format NVM is supported
SANICAP_CRYPTO, SANICAP_BLOCK = 1 << 0, 1 << 1
SANITIZE_BLOCK, SANITIZE_CRYPTO = 2, 4  # SANACT; every nvme-cli takes the numbers, only some the names
SECURE_ERASE_USER_DATA = 1  # SES of Format NVM
SANITIZE_NEVER, SANITIZE_COMPLETED, SANITIZE_RUNNING, SANITIZE_FAILED, SANITIZE_COMPLETED_KEPT = range(5)
PROGRESS_WHOLE = 65536  # SPROG counts 1/65536


@dataclass(frozen=True)
class LbaFormat:
    """One entry of Identify Namespace's LBA format table."""

    index: int
    data_bytes: int
    metadata_bytes: int
    relative_performance: int  # 0 is best


@dataclass(frozen=True)
class Abilities:
    """The abilities that the controller and the namespace state."""

    can_format: bool
    sanitize_action: int  # 0: the controller cannot sanitize without overwriting
    formats: tuple[LbaFormat, ...]
    format_in_use: int

    def lba_choices(self) -> tuple[int, ...]:
        """Sizes of logical block that can be chosen."""
        sizes = {entry.data_bytes for entry in self.formats if not entry.metadata_bytes} if self.can_format else set()
        return tuple(sorted(sizes))

    def format_for(self, lba_bytes: int) -> int:
        """Return the index for Format NVM: of this size, without metadata, with the best performance; 0: as now."""
        in_use = [entry for entry in self.formats if entry.index == self.format_in_use]
        if not lba_bytes or any(entry.data_bytes == lba_bytes and not entry.metadata_bytes for entry in in_use):
            return self.format_in_use
        fitting = [entry for entry in self.formats if entry.data_bytes == lba_bytes and not entry.metadata_bytes]
        if not fitting:
            raise StorageError(f"the drive has no LBA format of {lba_bytes} B without metadata")
        return min(fitting, key=lambda entry: (entry.relative_performance, entry.index)).index


def whole(data: bytes, size: int, what: str) -> bytes:
    """Return the structure's bytes, or say that it is cut short."""
    if len(data) < size:
        raise StorageError(f"nvme-cli returned {len(data)} B for {what}, which has {size} B; install a newer nvme-cli")
    return data


def parse_formats(namespace: bytes) -> tuple[LbaFormat, ...]:
    """Read the LBA format table; NLBAF counts from 0, entries not in use have LBADS 0."""
    formats = []
    for index in range(namespace[NLBAF_AT] + 1):
        metadata, shift, performance = struct.unpack_from("<HBB", namespace, LBAF_AT + index * LBAF_BYTES)
        if shift:
            formats.append(LbaFormat(index, 1 << shift, metadata, performance & 0x3))
    return tuple(formats)


def parse_abilities(controller: bytes, namespace: bytes) -> Abilities:
    """Read Identify Controller and Identify Namespace."""
    whole(controller, IDENTIFY_BYTES, "Identify Controller")
    whole(namespace, IDENTIFY_BYTES, "Identify Namespace")
    (oacs,) = struct.unpack_from("<H", controller, OACS_AT)
    (sanicap,) = struct.unpack_from("<I", controller, SANICAP_AT)
    action = SANITIZE_BLOCK if sanicap & SANICAP_BLOCK else SANITIZE_CRYPTO if sanicap & SANICAP_CRYPTO else 0
    flbas = namespace[FLBAS_AT]
    return Abilities(
        can_format=bool(oacs & OACS_FORMAT),
        sanitize_action=action,
        formats=parse_formats(namespace),
        format_in_use=(flbas & 0xF) | ((flbas >> 5 & 0x3) << 4),  # bits 6:5 hold the upper part
    )


@dataclass(frozen=True)
class Sanitizing:
    """The sanitize log: how the last or present one stands."""

    status: int
    done: float  # share from 0 to 1
    action: int = 0  # SANACT of the command that started it; 0: the drive does not say

    @property
    def completed(self) -> bool:
        """Says whether the last sanitize ended well."""
        return self.status in (SANITIZE_COMPLETED, SANITIZE_COMPLETED_KEPT)

    def is_of(self, action: int) -> bool:
        """Says whether it may be the one that was asked for, and not an older one of another kind."""
        return self.action in (0, action)


def parse_sanitize_log(log: bytes) -> Sanitizing:
    """Read the Sanitize Status log page."""
    progress, status, command = struct.unpack_from("<HHI", whole(log, SANITIZE_LOG_BYTES, "the sanitize log"))
    return Sanitizing(status & 0x7, progress / PROGRESS_WHOLE, command & 0x7)
