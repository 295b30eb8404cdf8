#!/usr/bin/env python3
"""Writes what the bench is made of as one CycloneDX document: `sbom.py OUTPUT`.

Promise: Python packages come from the locked requirements with their hashes, Debian packages from dpkg as they are installed here,
modules of InfluxDB from the binary itself (`go version -m`). A package that the lists name and this machine lacks stands there without
a version. The same machine and lists give the same bytes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.model import HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

BOOTSTRAP = Path(__file__).resolve().parent
INFLUXD = BOOTSTRAP.parents[1] / "build" / "tools" / "influxd"
VERSION = SchemaVersion.V1_6
PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\\\n)*.*)", re.MULTILINE)
SHA256 = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def python_packages(locked: str) -> Iterator[Component]:
    """Every pinned requirement of a list, with the hash of each file that may be installed."""
    for found in PINNED.finditer(locked):
        name, version = found["name"].lower(), found["version"]
        hashes = [HashTypeFactory().from_composite_str(f"sha256:{digest}") for digest in SHA256.findall(found["rest"])]
        yield component(name, version, PackageURL("pypi", None, name, version), hashes)


def debian_packages(names: list[str]) -> Iterator[Component]:
    """The packages of the map, in the versions that are installed here."""
    for name in sorted(names):
        asked = ["dpkg-query", "--show", "--showformat=${Version}", name]
        version = subprocess.run(asked, capture_output=True, text=True, check=False).stdout or None
        yield component(name, version, PackageURL("deb", "debian", name, version))


def go_modules(binary: Path) -> Iterator[Component]:
    """The modules that a Go program was built from. Raises OSError or CalledProcessError where go or the program is missing."""
    told = subprocess.run(["go", "version", "-m", str(binary)], capture_output=True, text=True, check=True).stdout
    for line in told.splitlines():
        fields = line.split()
        if len(fields) >= 3 and fields[0] in ("mod", "dep"):
            where, _, name = fields[1].rpartition("/")
            yield component(fields[1], fields[2], PackageURL("golang", where or None, name, fields[2]))


def component(name: str, version: str | None, purl: PackageURL, hashes: list[HashType] | None = None) -> Component:
    return Component(
        name=name, version=version, type=ComponentType.LIBRARY, purl=purl, bom_ref=purl.to_string(), hashes=hashes
    )


def bill() -> Bom:
    made = Bom()
    made.serial_number = made.metadata.timestamp = None  # type: ignore[assignment]  # the same content gives the same bytes
    for path in sorted(BOOTSTRAP.glob("requirements-*.txt")):
        made.components.update(python_packages(path.read_text(encoding="utf-8")))
    purposes = ["runtime", "test", "virtual", "go", "rust"]
    told = subprocess.run([BOOTSTRAP / "packages.sh", "--names", *purposes], capture_output=True, text=True, check=True)
    made.components.update(debian_packages(told.stdout.split()))
    made.components.update(go_modules(INFLUXD))
    return made


def main(output: Path) -> int:
    try:
        text = make_outputter(bill(), OutputFormat.JSON, VERSION).output_as_string(indent=1)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"sbom: {INFLUXD}: its modules cannot be read ({error}); `make influxd` builds it", file=sys.stderr)
        return 2
    if problem := JsonStrictValidator(VERSION).validate_str(text):
        print(f"sbom: the document is no CycloneDX {VERSION.to_version()}: {problem}", file=sys.stderr)
        return 2
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text + "\n", encoding="utf-8")
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
