"""The bootstrap scripts: quick when there is nothing to do, clear when they cannot go on."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
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
        timeout=600,
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


DEBIAN, UBUNTU, EL = "ID=debian", "ID=ubuntu\nID_LIKE=debian", 'ID="almalinux"\nID_LIKE="rhel centos fedora"'


def asked(
    clone: Path, system: str, names: str, *purposes: str, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Ask for packages on a system, with a map of the test's own."""
    (clone / "ansible/bootstrap/packages.txt").write_text(names)
    (clone.parent / "os-release").write_text(f"{system}\n")
    environment = {"BENCH_OS_RELEASE": str(clone.parent / "os-release"), "PATH": path or os.environ["PATH"]}
    return run(clone, "packages.sh", *purposes, **environment)


def test_packages_that_are_all_present_take_one_line_and_no_root(clone: Path, tmp_path: Path) -> None:
    """Nothing missing: apt-get is not even called."""
    path = commands(
        tmp_path / "bin", dpkg_query="echo 'installed foo'; echo 'installed bar'", apt_get="echo called >&2; exit 9"
    )
    done = asked(clone, DEBIAN, "# tools\nruntime foo = =\n\nruntime bar = -\ntest baz = =\n", path=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "packages: all 2 packages present\n", "")


def test_only_missing_packages_are_installed(clone: Path, tmp_path: Path) -> None:
    """A package that was removed but not purged is missing too."""
    done_file, calls = tmp_path / "done", tmp_path / "calls"
    query = (
        f"echo 'installed foo'; echo 'config-files baz'; "
        f"if [ -e {done_file} ]; then echo 'installed bar'; echo 'installed baz'; fi"
    )
    install = f'echo "$@" >> {calls}; case "$*" in *install*) touch {done_file};; esac'
    path = commands(
        tmp_path / "bin", dpkg_query=query, apt_get=install, dpkg=f"echo dpkg $@ >> {calls}", sudo='shift; exec "$@"'
    )
    done = asked(clone, UBUNTU, "runtime foo = =\nruntime x bar =\nruntime baz = =\nruntime gone - =\n", path=path)
    assert done.returncode == 0, done.stderr
    configure, update, installation = calls.read_text().splitlines()
    assert configure == "dpkg --configure -a"  # what a killed set-up left
    assert update.endswith(" update")
    assert installation.endswith(" install --no-install-recommends bar baz")


def test_dnf_is_asked_for_the_names_of_enterprise_linux(clone: Path, tmp_path: Path) -> None:
    """A name that two Debian packages share there is asked for once; what nothing there needs is not."""
    done_file, calls = tmp_path / "done", tmp_path / "calls"
    rpm = f"[ -e {done_file} ] && exit 0; echo 'no package provides pango'; echo 'no package provides ninja-build'; exit 2"
    path = commands(tmp_path / "bin", rpm=rpm, dnf=f'echo "$@" > {calls}; touch {done_file}', sudo='shift; exec "$@"')
    names = (
        "runtime a = pango\nruntime b = pango\nruntime ninja-build = ninja-build@crb\nruntime c = -\nruntime fio = =\n"
    )
    done = asked(clone, EL, names, path=path)
    assert done.returncode == 0, done.stderr
    assert calls.read_text() == "--assumeyes --setopt=install_weak_deps=False install pango ninja-build\n"
    assert "all 3 packages present after" in done.stdout


def test_a_package_that_no_repository_has_is_named_with_its_repository(clone: Path, tmp_path: Path) -> None:
    dnf = "echo 'No match for argument: ninja-build'; echo 'Error: Unable to find a match: ninja-build' >&2; exit 1"
    path = commands(
        tmp_path / "bin", rpm="echo 'no package provides ninja-build'; exit 1", dnf=dnf, sudo='shift; exec "$@"'
    )
    done = asked(clone, EL, "runtime ninja-build = ninja-build@crb\n", path=path)
    assert done.returncode == 1
    assert "no repository that is switched on has ninja-build (it is in CRB)" in done.stderr
    assert "dnf config-manager --set-enabled crb" in done.stderr


def test_an_installation_that_fails_says_so_with_its_log(clone: Path, tmp_path: Path) -> None:
    """It prints the last lines and the log's place; the exit code is not zero."""
    path = commands(
        tmp_path / "bin", dpkg_query="echo 'installed other'", apt_get="echo no route to mirror; exit 100", dpkg="exit 0",
        sudo='shift; exec "$@"',
    )  # fmt: skip
    done = asked(clone, DEBIAN, "runtime foo = =\n", path=path)
    assert done.returncode == 1
    assert "no route to mirror" in done.stderr
    assert "apt-get update failed" in done.stderr
    assert str(tmp_path / "cache") in done.stderr


def without(folder: Path, *absent: str) -> str:
    """Make a PATH that has the system's commands without the given ones."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name not in absent:
                (folder / program.name).unlink(missing_ok=True)
                (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.mark.parametrize(("system", "absent"), [(DEBIAN, "apt-get"), (EL, "dnf"), (EL, "rpm")])
def test_a_path_without_the_package_manager_is_told_with_what_to_do_by_hand(
    clone: Path, tmp_path: Path, system: str, absent: str
) -> None:
    path = commands(tmp_path / "all", rpm="exit 0", dnf="exit 0", apt_get="exit 0", dpkg_query="exit 0")
    (tmp_path / "all" / absent).unlink()
    bare = without(tmp_path / "bare", "apt-get", "dpkg-query", "dnf", "rpm")
    done = asked(clone, system, "runtime foo = bar\n", path=f"{path.split(':')[0]}:{bare}")
    assert (done.returncode, done.stdout) == (1, "")
    name = "bar" if system == EL else "foo"
    assert done.stderr == (
        f"packages: error: {absent} is not on PATH, so packages can neither be looked up nor installed\n"
        f"  put {absent} on PATH, or install what these packages hold, then run this again with BENCH_SKIP_PACKAGES=1: {name}\n"
    )


def test_a_system_that_nobody_knows_is_told_what_to_install_by_hand(clone: Path) -> None:
    done = asked(clone, "ID=arch", "runtime foo = bar\n")
    assert done.returncode == 1
    assert "not Debian, Ubuntu or Enterprise Linux" in done.stderr
    assert "BENCH_SKIP_PACKAGES=1: foo\n" in done.stderr


def test_tests_on_enterprise_linux_are_refused_by_name(clone: Path) -> None:
    done = asked(clone, EL, "runtime foo = bar\ntest baz = ?\n", "runtime", "test")
    assert done.returncode == 1
    assert "tests and the virtual candidate run on Debian and Ubuntu" in done.stderr


def test_a_purpose_that_does_not_exist_is_named(clone: Path) -> None:
    """The message also offers the purposes that do exist."""
    done = asked(clone, DEBIAN, "runtime foo = =\ntest bar = =\n", "tset")
    assert done.returncode == 1
    assert "packages have no purpose 'tset'" in done.stderr
    assert "runtime" in done.stderr and "test" in done.stderr


def test_a_line_of_the_map_that_lacks_a_name_is_named(clone: Path) -> None:
    done = asked(clone, DEBIAN, "runtime foo =\n")
    assert done.returncode == 1 and "'runtime foo' needs a purpose and three names" in done.stderr


def test_no_package_is_named_twice_for_a_purpose() -> None:
    lines = [line.split() for line in (BOOTSTRAP / "packages.txt").read_text().splitlines()]
    named = [(words[0], words[1]) for words in lines if words and not words[0].startswith("#")]
    assert len(named) == len(set(named))


@pytest.fixture
def somebody(clone: Path) -> Iterator[list[str]]:
    """Give the words before a command that run it as a user who owns nothing here. Needs root."""
    for folder in clone.parents:
        if stat.S_IMODE(folder.stat().st_mode) == 0o700:  # pytest's own: three of them, four below pytest-xdist
            folder.chmod(0o755)
    yield ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


def test_a_user_in_the_checkout_of_root_gets_one_clear_error(clone: Path, somebody: list[str], tmp_path: Path) -> None:
    """Whose it is and what to do; no line of a script."""
    (clone / "build").mkdir()
    environment = {**os.environ, "XDG_CACHE_HOME": "/tmp", "HOME": "/nonexistent"}
    for script in ("writable.sh", "python.sh", "native.sh"):
        require(clone, "")
        done = subprocess.run(
            [*somebody, clone / "ansible/bootstrap" / script, *(["daqwriter"] if script == "native.sh" else [])],
            text=True, capture_output=True, env=environment, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, ""), done.stdout
        assert f"{script[:-3]}: error: nobody cannot write to {clone}" in done.stderr
        assert "it belongs to root" in done.stderr and "work in a clone of your own (git clone" in done.stderr
        assert "Permission denied" not in done.stderr and ": line " not in done.stderr


def in_private_mounts(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell's script where its mounts end with it. Needs root."""
    return subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script], text=True, capture_output=True, timeout=600, check=False
    )


def test_a_read_only_checkout_is_one_error(clone: Path) -> None:
    done = in_private_mounts(
        f"mount --bind {clone} {clone}; mount -o remount,bind,ro {clone}; "
        f"XDG_CACHE_HOME={clone.parent}/cache exec {clone}/ansible/bootstrap/writable.sh"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot write to {clone}: " in done.stderr and "file system" in done.stderr and "read-only" in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_a_disk_that_fills_during_set_up_is_named_and_room_mends_it(clone: Path, tmp_path: Path) -> None:
    """The build of InfluxDB fills a small disk; with room, the same command succeeds, and nothing half-made was taken for whole."""
    go = (
        'if [ "$1" = env ]; then echo go1.22.0; exit 0; fi; dd if=/dev/zero of="$GOBIN/influxd" bs=1M count=${FILL:-8} || exit 1; '
        "printf '#!/bin/sh\\necho InfluxDB v1.8.10 x\\n' > $GOBIN/influxd; chmod +x $GOBIN/influxd"
    )
    path, cache, tool = commands(tmp_path / "bin", go=go), clone.parent / "cache", clone / "build/tools/influxd"
    cache.mkdir()
    start = f"PATH={path} XDG_CACHE_HOME={cache} {clone}/ansible/bootstrap/influxd.sh"
    done = in_private_mounts(
        f"mount -t tmpfs -o size=4m none {cache}; {start} && exit 9; ls {cache}/daq-storage-bench; test ! -e {tool}; "
        f"FILL=1 {start}; {tool} version"
    )
    assert f"the disk is full: {cache} has " in done.stderr
    assert "Make room there, then run this again" in done.stderr
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "InfluxDB v1.8.10 x"), done.stdout + done.stderr
    assert "influxd-build." not in done.stdout.replace("influxd-build.log", "")


def test_two_set_ups_at_once_build_once(clone: Path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    go = (
        f'if [ "$1" = env ]; then echo go1.22.0; exit 0; fi; echo built >> {count}; sleep 0.2; '
        "printf '#!/bin/sh\\necho InfluxDB v1.8.10 x\\n' > $GOBIN/influxd; chmod +x $GOBIN/influxd"
    )
    path = commands(tmp_path / "bin", go=go)
    both = [
        subprocess.Popen(
            [clone / "ansible/bootstrap/influxd.sh"], env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(tmp_path / "c")},
            stdout=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [one.wait(600) for one in both] == [0, 0]
    assert count.read_text() == "built\n"


@pytest.fixture
def native(clone: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Give a run of native.sh with a cmake that writes what a real one would and tells what it was asked."""
    cmake = (
        f'echo "$*" >> {tmp_path}/calls; case "$1" in -S) mkdir -p $4; echo "CMAKE_HOME_DIRECTORY:INTERNAL=$2" > $4/CMakeCache.txt; '
        'for word in "$@"; do case "$word" in -DCMAKE_COMPILE*) echo "CMAKE_COMPILE_WARNING_AS_ERROR:UNINITIALIZED=${word#*=}" '
        '>> $4/CMakeCache.txt;; esac; done; echo "BENCH_WITHOUT_hotstore:INTERNAL=it links liblmdb.a" >> $4/CMakeCache.txt; '
        "touch $4/build.ninja;; esac"
    )
    path = commands(tmp_path / "bin", cmake=cmake, ninja="echo 'daqwriter: phony'; echo 'netprobe: phony'")

    def build(*targets: str, repo: Path = clone, **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "calls").write_text("")
        return run(repo, "native.sh", *targets, PATH=path, **environment)

    return build


def test_a_copied_checkout_builds_itself_anew(
    clone: Path, tmp_path: Path, native: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The build tree that came along with the copy builds the other checkout's sources, or nothing."""
    assert native("daqwriter").returncode == 0
    (clone / "build/native-writer/old.o").touch()
    assert native("daqwriter").returncode == 0
    assert (tmp_path / "calls").read_text() == f"--build {clone}/build/native-writer --target daqwriter\n"
    copy = tmp_path / "copy"
    shutil.copytree(clone, copy)
    done = native("daqwriter", repo=copy)
    assert f"{copy}/build/native-writer was made from {clone}/native-writer, not from {copy}" in done.stdout
    assert [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()] == ["-S", "--build"]
    assert not (copy / "build/native-writer/old.o").exists() and (clone / "build/native-writer/old.o").exists()


def test_a_program_whose_libraries_are_missing_is_left_out_and_the_others_are_built(
    tmp_path: Path, native: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = native("daqwriter", "hotstore", "netprobe")
    assert done.returncode == 0
    assert "native: hotstore is left out: it links liblmdb.a\n" in done.stdout
    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith("--target daqwriter netprobe")
    alone = native("hotstore")
    assert alone.returncode == 1 and "nothing of hotstore can be built here" in alone.stderr
    assert "-S " in (tmp_path / "calls").read_text()  # looked again: the libraries may have been installed since


def test_warnings_are_errors_only_where_that_was_asked_for(
    tmp_path: Path, native: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """And stay so in that build tree, so that a test and a run do not compile all sources in turn."""
    native("daqwriter", WERROR="")
    assert "WARNING_AS_ERROR" not in (tmp_path / "calls").read_text()
    native("daqwriter", WERROR="ON")
    assert "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON" in (tmp_path / "calls").read_text()
    native("daqwriter", WERROR="")
    assert (tmp_path / "calls").read_text().startswith("--build ")


def test_an_influxd_that_is_there_is_left_alone(clone: Path) -> None:
    """The tool's own answer decides, so nothing is built or fetched."""
    tool = clone / "build/tools/influxd"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho 'InfluxDB v1.8.10 (git: unknown unknown)'\n")
    tool.chmod(0o755)
    done = run(clone, "influxd.sh")
    assert (done.returncode, done.stdout) == (0, "influxd: InfluxDB 1.8.10 present\n")


def test_go_comes_with_the_other_packages_where_a_build_is_due(clone: Path, tmp_path: Path) -> None:
    """A second call of the package manager, after the others have begun to build, would cost them a minute."""
    old = commands(tmp_path / "bin", go="echo go1.18.1")
    tool = clone / "build/tools/influxd"
    wanted = run(clone, "influxd.sh", "--purposes", PATH=old)
    has_newer = any(Path(go).exists() for go in ("/usr/local/go/bin/go", "/usr/bin/go")) or list(
        Path("/usr/lib").glob("go-*/bin/go")
    )
    assert wanted.returncode == 0 and (wanted.stdout == "go\n" or has_newer)
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho 'InfluxDB v1.8.10 (git: unknown unknown)'\n")
    tool.chmod(0o755)
    assert run(clone, "influxd.sh", "--purposes", PATH=old).stdout == ""


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


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed here: make packages-test")
def test_the_scripts_pass_shellcheck() -> None:
    """They need no exception beyond those written in them."""
    scripts = sorted(str(path) for path in BOOTSTRAP.glob("*.sh"))
    done = subprocess.run(["shellcheck", *scripts], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
