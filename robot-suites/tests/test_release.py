"""Parts of a release beside the code: one version, the changelog's form, presets, hooks, the control node's image."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from test_checks import checks  # noqa: F401 - a fixture

from daq_bench.rig.base.settings import Layout
from daq_bench.telemetry_agent import __version__ as agent_version
from daq_bench.virtual_candidate.apt_sources import host_sources

ROOT = Layout().repository
KINDS = ["Added", "Changed", "Fixed", "Removed"]
LINES_MAX = 120
# What a machine may need to reach a mirror; nothing of it may stay in an image.
SETTINGS = re.compile(r"(PIP|UV|GO|SSL)_?[A-Z_]*|(https?|no)_proxy", re.IGNORECASE)

AUTHORITIES = "/var/tmp/authorities.crt"  # a mirror's, inside


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def yaml_of(name: str) -> Any:
    return YAML(typ="safe").load(text_of(name))


def test_one_version_is_told_everywhere() -> None:
    heading = re.search(r"^## (\S+) \((\S+)\)$", text_of("CHANGELOG.md"), re.MULTILINE)
    native = re.search(r"project\(daqwriter VERSION (\S+)", text_of("native-writer/CMakeLists.txt"))
    cited = yaml_of("CITATION.cff")
    assert heading is not None and native is not None
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    assert {heading[1], native[1], cited["version"], agent_version} == {version}
    assert heading[2] == str(cited["date-released"])


def test_the_changelog_of_a_release_is_short_and_in_four_kinds() -> None:
    section = re.split(r"^## ", text_of("CHANGELOG.md"), flags=re.MULTILINE)[1]
    assert re.findall(r"^### (.*)$", section, re.MULTILINE) == KINDS
    assert len(section.splitlines()) <= LINES_MAX


def test_presets_configure_what_ci_builds(checks: Any) -> None:  # noqa: F811
    presets = json.loads(text_of("native-writer/CMakePresets.json"))["configurePresets"]
    for name, sanitizer in (("asan", "address"), ("tsan", "thread")):
        (preset,) = (one for one in presets if one["name"] == name)
        asked = {f"-D{key}={value}" for key, value in preset["cacheVariables"].items()}
        build = checks.sanitized(name, sanitizer)[0].argv[-1]
        assert asked == {word for word in shlex.split(build) if word.startswith("-D")}
        assert preset["binaryDir"] == "${sourceDir}/../build/native-writer-" + name
        assert f"build/native-writer-{name}" in build
    assert {one["name"] for one in presets if not one.get("hidden")} == {"release", "asan", "tsan"}


def test_hooks_call_what_the_project_has() -> None:
    (local,) = yaml_of(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local", "nothing is fetched from elsewhere"
    called = [hook["entry"].split() for hook in local["hooks"]]
    targets = {words[-1] for words in called if words[0] == "make"}
    assert targets == {f"lint-{name}" for name in ("types", "imports", "docs", "robot", "shell", "native")}
    assert targets <= set(re.findall(r"^(lint-\w+):", text_of("Makefile"), re.MULTILINE))
    assert {words[0] for words in called} == {"make", ".venv/bin/ruff"}


def test_cpp_has_one_style() -> None:
    listed = subprocess.run(["git", "ls-files", "*.clang-format"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout.split() == [".clang-format"]


def test_an_image_takes_nothing_that_git_ignores() -> None:
    ignored = {line.strip("/") for line in text_of(".gitignore").splitlines() if line.startswith("/")}
    assert ignored <= set(text_of(".containerignore").split())


@pytest.mark.campaign
@pytest.mark.timeout(3600)  # it compiles InfluxDB and the native programs once more
def test_the_control_nodes_image_is_built_and_answers(tmp_path: Path) -> None:
    """By buildah, from a root that mmdebstrap makes of this machine's own apt sources: nothing is pulled."""
    buildah = ["buildah", f"--root={tmp_path}/store", f"--runroot={tmp_path}/run", "--storage-driver=vfs"]

    def run(*words: object, **more: Any) -> str:
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=3000, check=False, **more)
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout.strip()

    sources = host_sources()
    mirrors = []
    for name, text in (("host.sources", sources.sources), ("host.list", sources.one_line)):
        if text.strip():
            (tmp_path / name).write_text(text, encoding="utf-8")
            mirrors.append(tmp_path / name)
    options = [f"--aptopt={option}" for option in sources.options]
    run("mmdebstrap", "--variant=minbase", *options, sources.codename, tmp_path / "root.tar", *mirrors)
    base = run(*buildah, "from", "scratch")
    run(*buildah, "add", base, tmp_path / "root.tar", "/")
    run(*buildah, "commit", base, "localhost/control-node-base")
    secret = tmp_path / "setup"
    mine = {name: value for name, value in os.environ.items() if SETTINGS.fullmatch(name) and name != "PIP_FIND_LINKS"}
    authorities = mine.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
    mine |= {"SSL_CERT_FILE": AUTHORITIES, "PIP_CERT": AUTHORITIES}
    secret.write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in mine.items()), encoding="utf-8")
    run(
        *(*buildah, "build", "--isolation=chroot", "--build-arg=BASE=localhost/control-node-base"),
        *(f"--secret=id=setup,src={secret}", f"--volume={authorities}:{AUTHORITIES}:ro"),
        *("--tag=localhost/control-node", ROOT),
    )
    image = run(*buildah, "from", "localhost/control-node")
    inside = [*buildah, "run", "--isolation=chroot", image, "--"]
    assert run(*inside, "daq-bench", "validate").endswith("entries are valid; this run erases nothing")
    assert run(*inside, "build/native-writer/daqwriter", "--version").startswith("daqwriter")
    assert run(*inside, "sh", "-c", "ls -A /run/secrets 2>/dev/null; env | grep -c PIP_CERT || true") == "0"
