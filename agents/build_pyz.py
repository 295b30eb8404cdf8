"""Packs a package of agents/ and `candidate_kit` into one executable file: `python agents/build_pyz.py --output build/telemetry_agent.pyz`,
`--package analysis_reader`.

Promise: the same sources give the same bytes (sorted names, fixed dates and modes, no compression), so that
the archive's checksum identifies the program that a run used. Standard library only; `zipapp` itself would
store the files' dates.
"""

from __future__ import annotations

import argparse
import io
import os
import zipfile
from pathlib import Path

SHEBANG = b"#!/usr/bin/env python3\n"
EARLIEST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
FILE_MODE = 0o100644 << 16
IMPORT_ROOT = "daq_bench"
KIT = "candidate_kit"
MAIN = f"from {IMPORT_ROOT}.{{}}.cli import main\n\nif __name__ == '__main__':\n    raise SystemExit(main())\n"


def members(package: Path) -> dict[str, bytes]:
    """Archive name -> content."""
    packages = (package, package.with_name(KIT))
    files = [file for folder in packages for file in folder.rglob("*.py")]
    found = {f"{IMPORT_ROOT}/{file.relative_to(package.parent)}": file.read_bytes() for file in files}
    # With an `__init__.py` the root is this archive alone: Python 3.9 sees no namespace package in an archive.
    return {"__main__.py": MAIN.format(package.name).encode(), f"{IMPORT_ROOT}/__init__.py": b"", **found}


def archive(package: Path) -> bytes:
    """The whole .pyz."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as stream:
        for name, content in sorted(members(package).items()):
            entry = zipfile.ZipInfo(name, EARLIEST_ZIP_DATE)
            entry.create_system = 3  # Unix, wherever it is built
            entry.external_attr = FILE_MODE
            stream.writestr(entry, content)
    return SHEBANG + buffer.getvalue()


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Pack a package of agents/ into one file.", allow_abbrev=False)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.pyz")
    parser.add_argument("--package", default="telemetry_agent", metavar="NAME")
    options = parser.parse_args(argv)
    output: Path = options.output
    output.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place: two set-ups at once, or a full disk, leave no half of one.
    new = output.with_name(f"{output.name}.{os.getpid()}")
    new.write_bytes(archive(Path(__file__).resolve().parent / IMPORT_ROOT / options.package))
    new.chmod(0o755)
    new.replace(output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
