"""`daq-bench`, the installed command: a wheel in an environment of its own, outside and inside of a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from rig.base.settings import Layout
from rig.cli import COMMANDS


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a built wheel in a fresh environment, whose requirements are lent from ours."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # A build leaves folders beside its sources: a copy of what is tracked or new, and of nothing ignored.
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=Layout().repository,
        capture_output=True,
        check=True,
    ).stdout
    source.mkdir()
    copied = subprocess.run(
        ["cpio", "--null", "-pdm", "--quiet", str(source)], input=listed, cwd=Layout().repository, check=False
    )
    if copied.returncode != 0:
        pytest.fail("the checkout could not be copied")
    build = "import setuptools.build_meta as b; print(b.build_wheel(__import__('sys').argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wheel = folder / done.stdout.splitlines()[-1]
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True)
    return environment / "bin" / "daq-bench"


def run(command: Path, *words: str, where: Path) -> subprocess.CompletedProcess[str]:
    # A path's .pth files are not followed, so that our own editable install stays out.
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"]}
    return subprocess.run(
        [command, *words], cwd=where, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_outside_of_a_checkout_it_helps_and_says_what_it_needs(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "--help", where=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: daq-bench")
    assert "needs the bench's checkout" in done.stdout
    refused = run(installed, "validate", where=tmp_path)
    assert refused.returncode == 2
    assert "needs the bench's checkout" in refused.stderr


def test_inside_of_a_checkout_it_is_that_checkouts_bench(installed: Path) -> None:
    done = run(installed, "validate", where=Layout().repository / "docs")
    assert done.returncode == 0, done.stderr
    assert "lab.yml: candidate this-machine" in done.stdout
    done = run(installed, "--help", where=Layout().repository)
    assert done.stdout.startswith("usage: daq-bench")
    assert all(name in done.stdout for name in COMMANDS)


def test_the_completion_offers_commands_and_options(installed: Path) -> None:
    script = run(installed, "completion", where=Layout().repository).stdout
    for words, offered in (("daq-bench disc", "discover"), ("daq-bench doctor --js", "--json")):
        ask = f'{script}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _daq_bench; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.split() == [offered], done.stderr
