"""Reads from an ELF file what it needs of the machine that runs it: processor, libraries, version of the C library.

Pure and without tools (readelf is not on every machine). Layout: System V ABI, and the GNU version sections of the Linux
Standard Base, `Elf64_Verneed`.
"""

from __future__ import annotations

import os
import struct
from typing import Any

from ansible.module_utils.bench_fit import version_key

MAGIC = b"\x7fELF"
# e_machine, as `uname -m` names it.
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le", 22: "s390x"}
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_RPATH, DT_RUNPATH, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 15, 29, 0x6FFFFFFE, 0x6FFFFFFF
# The libraries that glibc itself brings, and libgcc_s, which its packages need everywhere; everything else is a library that a machine
# may lack.
GLIBC = (
    "libgcc_s.so",
    "libc.so",
    "libm.so",
    "libpthread.so",
    "libdl.so",
    "librt.so",
    "libresolv.so",
    "ld-linux",
    "ld64",
    "libmvec.so",
)


class Elf:
    """A 64-bit little-endian ELF file. ValueError for any other file."""

    def __init__(self, data: bytes) -> None:
        """Find the dynamic section."""
        if data[:4] != MAGIC or data[4:6] != b"\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.data = data
        number: int = struct.unpack_from("<H", data, 18)[0]
        self.machine = MACHINES.get(number, f"ELF machine {number}")
        offset, size, count = (
            struct.unpack_from("<Q", data, 32)[0],
            *struct.unpack_from("<HH", data, 54),
        )
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, offset + index * size) for index in range(count)]
        self.dynamic: list[tuple[int, int]] = []
        for kind, _flags, place, _address, _physical, length, _memory, _alignment in self.segments:
            if kind == PT_DYNAMIC:
                self.dynamic = [struct.unpack_from("<qQ", data, place + at) for at in range(0, length, 16)]

    def _file_offset(self, address: int) -> int:
        for kind, _flags, place, start, _physical, length, _memory, _alignment in self.segments:
            if kind == PT_LOAD and start <= address < start + length:
                return int(place + address - start)
        raise ValueError(f"address {address:#x} is in no segment of the file")

    def _value(self, tag: int) -> int:
        return next((value for found, value in self.dynamic if found == tag), 0)

    def _text(self, offset: int) -> str:
        start = self._file_offset(self._value(DT_STRTAB)) + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    @property
    def needed(self) -> list[str]:
        """Names of the shared libraries that it is linked to."""
        return [self._text(value) for tag, value in self.dynamic if tag == DT_NEEDED]

    @property
    def run_path(self) -> list[str]:
        """Directories that it looks for them in, first of all."""
        texts = [self._text(value) for tag, value in self.dynamic if tag in (DT_RPATH, DT_RUNPATH)]
        return [part for text in texts for part in text.split(":") if part]

    @property
    def glibc_min(self) -> str:
        """Newest version of glibc that any of its symbols asks for; empty when none does."""
        address, versions = self._value(DT_VERNEED), []
        for _entry in range(self._value(DT_VERNEEDNUM)):
            place = self._file_offset(address)
            _version, count, _file, aux, following = struct.unpack_from("<HHIII", self.data, place)
            place += aux
            for _name in range(count):
                name_at, next_aux = struct.unpack_from("<II", self.data, place + 8)
                versions.append(self._text(name_at))
                place += next_aux
            address += following
        numbers = [text[len("GLIBC_") :] for text in versions if text.startswith("GLIBC_")]
        return max((text for text in numbers if text[0].isdigit()), key=version_key, default="")


def needs_of(path: str) -> dict[str, Any]:
    """Do as _needs_of. Raises ValueError for a file that ends too early or is damaged otherwise."""
    try:
        return _needs_of(path)
    except (struct.error, IndexError) as error:
        raise ValueError(str(error)) from None


def _needs_of(path: str) -> dict[str, Any]:
    """Describe what a program needs, the libraries that it carries beside it included.

    `machine` is empty for what is no ELF file (a script), which then needs nothing that is known here. `carried` are the
    files that it finds by a path relative to its own ($ORIGIN); `libraries` must be on the machine that runs it.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    if not data.startswith(MAGIC):
        return {"machine": "", "glibc_min": "", "libraries": [], "carried": []}
    program = Elf(data)
    folders = [part.replace("$ORIGIN", os.path.dirname(path)) for part in program.run_path if "$ORIGIN" in part]
    libraries: set[str] = set()
    carried: dict[str, str] = {}
    versions, waiting = [program.glibc_min], list(program.needed)
    while waiting:
        name = waiting.pop()
        if name.startswith(GLIBC) or name in libraries or name in carried:
            continue
        beside = [os.path.join(folder, name) for folder in folders if os.path.isfile(os.path.join(folder, name))]
        if not beside:
            libraries.add(name)
            continue
        carried[name] = beside[0]
        with open(beside[0], "rb") as stream:
            library = Elf(stream.read())
        versions.append(library.glibc_min)
        waiting += library.needed
    return {
        "machine": program.machine,
        "glibc_min": max((text for text in versions if text), key=version_key, default=""),
        "libraries": sorted(libraries),
        "carried": sorted(carried.values()),
    }
