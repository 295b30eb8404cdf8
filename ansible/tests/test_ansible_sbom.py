"""`make sbom`: the document names what is installed, and fails where it could not look."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BOOTSTRAP = REPOSITORY / "ansible" / "bootstrap"
PROGRAM = REPOSITORY / "build" / "sbom" / "bin" / "python"


@pytest.fixture(scope="module")
def components() -> dict[str, dict[str, Any]]:
    """The document that the command leaves, by package URL."""
    done = subprocess.run(
        ["make", "--no-print-directory", "sbom"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((REPOSITORY / "build" / "sbom.cdx.json").read_text(encoding="utf-8"))
    return {unquote(one["purl"]): one for one in document["components"]}


def test_every_locked_requirement_stands_in_it_with_its_hashes(components: dict[str, dict[str, Any]]) -> None:
    """Names, versions and SHA-256 are those of the lists, which are read here in another way."""
    for path in BOOTSTRAP.glob("requirements-*.txt"):
        for block in re.split(r"\n(?=\S)", path.read_text(encoding="utf-8")):
            if block.startswith("#"):
                continue
            name, version = block.split()[0].split("==")
            found = {one["content"] for one in components[f"pkg:pypi/{name.lower()}@{version}"]["hashes"]}
            assert found == {word.rpartition(":")[2] for word in block.split() if word.startswith("--hash=")}, name


def test_influxdb_and_the_tools_of_debian_stand_in_it(components: dict[str, dict[str, Any]]) -> None:
    """InfluxDB in the version that the bootstrap builds, fio in the one that dpkg has."""
    version = re.search(r"^readonly VERSION=(\S+)$", (BOOTSTRAP / "influxd.sh").read_text(), re.MULTILINE)
    assert version and f"pkg:golang/github.com/influxdata/influxdb@v{version[1]}" in components
    fio = subprocess.run(["dpkg-query", "-Wf${Version}", "fio"], capture_output=True, text=True, check=True).stdout
    assert components[f"pkg:deb/debian/fio@{fio}"]["version"] == fio


def test_a_program_whose_modules_cannot_be_read_is_an_error(
    components: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """Without influxd nothing is written, and the remedy is named."""
    assert components  # the environment of the command is there
    tree = tmp_path / "ansible" / "bootstrap"
    tree.mkdir(parents=True)
    (tree / "sbom.py").write_text((BOOTSTRAP / "sbom.py").read_text(encoding="utf-8"))
    done = subprocess.run(
        [str(PROGRAM), str(tree / "sbom.py"), str(tmp_path / "out.json")],
        capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False,
    )  # fmt: skip
    assert (done.returncode, (tmp_path / "out.json").exists()) == (2, False)
    assert "make influxd" in done.stderr
