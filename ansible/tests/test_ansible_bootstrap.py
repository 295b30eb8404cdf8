"""The bootstrap scripts: quick when there is nothing to do, clear when they cannot go on."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BOOTSTRAP = Path(__file__).resolve().parents[1] / "bootstrap"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Give a repository with nothing in it but the bootstrap scripts."""
    shutil.copytree(BOOTSTRAP, tmp_path / "repo/ansible/bootstrap")
    return tmp_path / "repo"


def run(repo: Path, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the clone from another directory, with a cache of its own."""
    return subprocess.run(
        [str(repo / "ansible/bootstrap" / script), *arguments],
        cwd="/",
        env={**os.environ, "XDG_CACHE_HOME": str(repo.parent / "cache"), **environment},
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def commands(folder: Path, **scripts: str) -> str:
    """Make a PATH that has the system's commands with the given ones replaced."""
    folder.mkdir()
    for name, body in scripts.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_packages_that_are_all_present_take_one_line_and_no_root(clone: Path, tmp_path: Path) -> None:
    """Nothing missing: apt-get is not even called."""
    listing = tmp_path / "list.txt"
    listing.write_text("# tools\nfoo\nbar # why\n")
    path = commands(
        tmp_path / "bin", dpkg_query="echo 'installed foo'; echo 'installed bar'", apt_get="echo called >&2; exit 9"
    )
    done = run(clone, "apt-packages.sh", str(listing), PATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "apt-packages: all 2 packages present\n", "")


def test_only_missing_packages_are_installed(clone: Path, tmp_path: Path) -> None:
    """A package that was removed but not purged is missing too."""
    listing = tmp_path / "list.txt"
    listing.write_text("foo\nbar\nbaz\n")
    done_file, calls = tmp_path / "done", tmp_path / "calls"
    query = (
        f"echo 'installed foo'; echo 'config-files baz'; "
        f"if [ -e {done_file} ]; then echo 'installed bar'; echo 'installed baz'; fi"
    )
    install = f'echo "$@" >> {calls}; case "$*" in *install*) touch {done_file};; esac'
    path = commands(tmp_path / "bin", dpkg_query=query, apt_get=install, sudo='shift; exec "$@"')
    done = run(clone, "apt-packages.sh", str(listing), PATH=path)
    assert done.returncode == 0, done.stderr
    update, installation = calls.read_text().splitlines()
    assert update.endswith(" update")
    assert installation.endswith(" install --no-install-recommends bar baz")


def test_an_installation_that_fails_says_so_with_its_log(clone: Path, tmp_path: Path) -> None:
    """The last lines and the log's place; the exit code is not zero."""
    listing = tmp_path / "list.txt"
    listing.write_text("foo\n")
    path = commands(
        tmp_path / "bin", dpkg_query="echo 'installed other'", apt_get="echo no route to mirror; exit 100",
        sudo='shift; exec "$@"',
    )  # fmt: skip
    done = run(clone, "apt-packages.sh", str(listing), PATH=path)
    assert done.returncode == 1
    assert "no route to mirror" in done.stderr
    assert "apt-get update failed" in done.stderr
    assert str(tmp_path / "cache") in done.stderr


def test_a_list_that_does_not_exist_is_named(clone: Path) -> None:
    """And the ones that do are offered."""
    done = run(clone, "apt-packages.sh", "nothing.txt")
    assert done.returncode == 1
    assert "no such package list: nothing.txt" in done.stderr
    assert "apt-runtime.txt" in done.stderr


def test_an_influxd_that_is_there_is_left_alone(clone: Path) -> None:
    """The tool's own answer decides, so nothing is built or fetched."""
    tool = clone / "build/tools/influxd"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho 'InfluxDB v1.8.10 (git: unknown unknown)'\n")
    tool.chmod(0o755)
    done = run(clone, "influxd.sh")
    assert (done.returncode, done.stdout) == (0, "influxd: InfluxDB 1.8.10 present\n")


def test_a_damaged_influxd_is_replaced_from_the_cache(clone: Path, tmp_path: Path) -> None:
    """No build where the cache holds the right version; the cache is a copy, not the same file."""
    cached = tmp_path / "cache/daq-storage-bench/influxd-1.8.10"
    cached.parent.mkdir(parents=True)
    cached.write_text("#!/bin/sh\necho 'InfluxDB v1.8.10 (git: unknown unknown)'\n")
    cached.chmod(0o755)
    tool = clone / "build/tools/influxd"
    tool.parent.mkdir(parents=True)
    tool.write_text("junk")
    done = run(clone, "influxd.sh")
    assert done.returncode == 0, done.stderr
    assert tool.read_text() == cached.read_text()
    assert not tool.samefile(cached)


def test_a_failed_influxd_build_leaves_nothing_half_made(clone: Path, tmp_path: Path) -> None:
    """The compiler's message is shown; neither cache nor repository has a binary."""
    go = 'if [ "$1" = env ]; then echo go1.22.0; else echo "cannot find module"; exit 1; fi'
    done = run(clone, "influxd.sh", PATH=commands(tmp_path / "bin", go=go))
    assert done.returncode == 1
    assert "cannot find module" in done.stderr
    assert "did not build" in done.stderr
    assert sorted(path.name for path in (tmp_path / "cache/daq-storage-bench").iterdir()) == [
        "influxd-build.log",
        "influxd.lock",
    ]
    assert not (clone / "build/tools").exists()


def test_a_python_that_is_too_old_is_refused_by_name(clone: Path, tmp_path: Path) -> None:
    """A chosen interpreter is taken or refused, never silently replaced."""
    (clone / "requirements.txt").write_text("")
    (clone / "pyproject.toml").write_text("")
    path = commands(tmp_path / "bin", old_python="exit 1")
    done = run(clone, "python.sh", PATH=path, PYTHON="old-python")
    assert done.returncode == 1
    assert "no Python of 3.11 or newer found (looked for old-python)" in done.stderr
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("held", [".bench-requirements", "pyvenv.cfg", "bin/tool"])
def test_an_environment_behind_a_link_is_not_touched(clone: Path, tmp_path: Path, held: str) -> None:
    (clone / "requirements.txt").write_text("")
    (clone / "pyproject.toml").write_text("")
    theirs = tmp_path / "theirs" / held
    theirs.parent.mkdir(parents=True)
    theirs.write_text("somebody's")
    (clone / ".venv").symlink_to(tmp_path / "theirs")
    done = run(clone, "python.sh")
    assert (
        done.returncode != 0
        and f"is a link to {tmp_path / 'theirs'}" in done.stderr
        and "remove the link" in done.stderr
    )
    assert theirs.read_text() == "somebody's" and len(list((tmp_path / "theirs").rglob("*"))) <= 2


def test_a_current_environment_is_left_alone(clone: Path) -> None:
    """A failed run leaves no stamp; a matching stamp ends the run at once; a changed list is noticed."""
    (clone / "requirements.txt").write_text("# nothing\n")
    (clone / "pyproject.toml").write_text("[")  # cannot be installed, and pip knows that without a network
    stamp = clone / ".venv/.bench-requirements"
    first = run(clone, "python.sh")
    assert first.returncode == 1
    assert "build/logs/pip.log" in first.stderr
    assert not stamp.exists()
    wanted = subprocess.run(
        ["bash", "-c", f"cd / && printf '%s\\n' {clone} | cat - {clone}/requirements.txt {clone}/pyproject.toml"
         " | sha256sum | cut -d' ' -f1"], text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip
    stamp.write_text(wanted)
    assert run(clone, "python.sh").stdout == "python: .venv is current\n"
    (clone / "requirements.txt").write_text("# nothing more\n")
    assert "installing the 0 requirements" in run(clone, "python.sh").stdout


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is in apt-test.txt, not installed here")
def test_the_scripts_pass_shellcheck() -> None:
    """Without a single exception beyond those written in them."""
    scripts = sorted(str(path) for path in BOOTSTRAP.glob("*.sh"))
    done = subprocess.run(["shellcheck", *scripts], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
