"""The bootstrap scripts: quick when there is nothing to do, clear when they cannot go on."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from importlib.util import cache_from_source, find_spec
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


def require(clone: Path, text: str) -> None:
    """Make `text` the list of every group."""
    for group in ("uv", "qualify", "fleet", "analysis", "test"):
        (clone / f"ansible/bootstrap/requirements-{group}.txt").write_text(f"# {group}\n{text}")
    (clone / "pyproject.toml").touch()


def stamp_of(clone: Path, group: str) -> str:
    """Return the stamp that a finished set-up of a group leaves in .venv."""
    lists = [clone / f"ansible/bootstrap/requirements-{name}.txt" for name in ("uv", group)]
    text = f"{clone}\n" + "".join(
        file.read_text() for file in (*lists, clone / "pyproject.toml", clone / "ansible/bootstrap/python.sh")
    )
    return hashlib.sha256(text.encode()).hexdigest() + "\n"


def test_what_a_run_imports_is_compiled_once() -> None:
    """Otherwise each start of ansible-playbook compiles it again where Python may not keep it."""
    imported = (
        "ansible.cli.playbook",
        "ansible.executor.task_executor",
        "matplotlib.backends.backend_svg",
        "weasyprint",
    )
    files = [find_spec(name).origin for name in imported]
    assert [file for file in files if not Path(cache_from_source(file)).is_file()] == []


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
    """It prints the last lines and the log's place; the exit code is not zero."""
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
    """The message also offers the lists that do exist."""
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
    require(clone, "")
    (clone / "pyproject.toml").write_text("")
    path = commands(tmp_path / "bin", old_python="exit 1")
    done = run(clone, "python.sh", PATH=path, PYTHON="old-python")
    assert done.returncode == 1
    assert "no Python of 3.11 or newer found (looked for old-python)" in done.stderr
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("held", [".bench-requirements", "pyvenv.cfg", "bin/tool"])
def test_an_environment_behind_a_link_is_not_touched(clone: Path, tmp_path: Path, held: str) -> None:
    require(clone, "")
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
    require(clone, "# nothing\n")  # not even uv, without which nothing can be installed
    (clone / "pyproject.toml").write_text("")
    stamp = clone / ".venv/.bench-requirements"
    first = run(clone, "python.sh")
    assert first.returncode == 1
    assert "build/logs/python.log" in first.stderr
    assert not stamp.exists()
    stamp.write_text(stamp_of(clone, "qualify"))
    assert run(clone, "python.sh").stdout == "python: .venv is current\n"
    assert "requirements of 'test'" in run(clone, "python.sh", "test").stdout
    stamp.write_text(stamp_of(clone, "test"))  # has all that the others have
    for group in ("qualify", "fleet", "analysis", "test"):
        assert run(clone, "python.sh", group).stdout == "python: .venv is current\n"
    require(clone, "# nothing more\n")
    assert "installing the 0 requirements of 'qualify'" in run(clone, "python.sh").stdout


def test_a_group_that_is_not_there_is_refused_by_name(clone: Path) -> None:
    require(clone, "")
    done = run(clone, "python.sh", "tset")
    assert (
        done.returncode == 1
        and "no group of requirements 'tset'" in done.stderr
        and "qualify, fleet, analysis or test" in done.stderr
    )
    assert not (clone / ".venv").exists()


def test_every_requirement_has_an_exact_version_and_hashes() -> None:
    """A package whose files somebody replaced in the registry is refused."""
    for group in ("uv", "qualify", "fleet", "analysis", "test"):
        lines = (BOOTSTRAP / f"requirements-{group}.txt").read_text().splitlines()
        packages = [index for index, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
        assert packages
        for index in packages:
            assert "==" in lines[index] and lines[index + 1].lstrip().startswith("--hash=sha256:"), lines[index]


def test_a_run_needs_no_linter_and_no_test_library() -> None:
    named = {
        group: {line.split("==")[0] for line in (BOOTSTRAP / f"requirements-{group}.txt").read_text().splitlines()}
        for group in ("qualify", "fleet", "analysis", "test")
    }
    assert named["qualify"] < named["fleet"] < named["analysis"] < named["test"]
    assert not named["analysis"] & {"pytest", "mypy", "ruff", "ansible-lint"}
    assert not named["qualify"] & {"dask", "distributed", "uproot", "awkward", "pyarrow", "s3fs"}


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is in apt-test.txt, not installed here")
def test_the_scripts_pass_shellcheck() -> None:
    """They need no exception beyond those written in them."""
    scripts = sorted(str(path) for path in BOOTSTRAP.glob("*.sh"))
    done = subprocess.run(["shellcheck", *scripts], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
