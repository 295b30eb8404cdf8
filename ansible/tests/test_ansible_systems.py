"""The set-up on the systems that the README names (docs/supported-systems.md): names of packages against the archives of Debian, the
installer's dnf against a real dnf and rpm with a repository of small packages that are made here, and a set-up without a network."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import textwrap
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BOOTSTRAP = REPOSITORY / "ansible" / "bootstrap"
ALMALINUX = (
    'NAME="AlmaLinux"\nVERSION="9.6 (Sage Margay)"\nID="almalinux"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n'
)
ARCHITECTURE = "noarch"


def names(purposes: list[str], os_release: Path | None = None) -> list[str]:
    """Return the names of packages for these purposes; without a system's own file those of Debian."""
    told = os_release or Path("/etc/os-release")
    argv = [BOOTSTRAP / "packages.sh", "--names", *purposes]
    done = subprocess.run(
        argv, env={**os.environ, "BENCH_OS_RELEASE": str(told)}, text=True, capture_output=True, check=True
    )
    return done.stdout.split()


def run(*argv: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its output is in the failure's message."""
    done = subprocess.run(
        [*map(str, argv)], env={**os.environ, **environment}, text=True, capture_output=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, argv))}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


@pytest.mark.systems
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_every_name_of_the_map_can_be_installed_on(suite: str, tmp_path: Path) -> None:
    """The archive of the suite is asked, from this machine's own mirror, and nothing is installed: as if on a machine without a package."""
    mirror = run(
        "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm"
    ).stdout.split()
    sources, status = tmp_path / "sources.list", tmp_path / "status"
    sources.write_text(f"deb {mirror[0]} {suite} main\n")
    status.touch()
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    places = {
        "Dir::Etc::SourceList": sources, "Dir::Etc::SourceParts": "/dev/null", "Dir::State": tmp_path / "state",
        "Dir::State::status": status, "Dir::Cache": tmp_path / "cache", "APT::Sandbox::User": "root",
        "Acquire::Check-Valid-Until": "false", "Acquire::Retries": "3",
    }  # fmt: skip
    options = [word for key, value in places.items() for word in ("-o", f"{key}={value}")]
    run("apt-get", *options, "update")
    wanted = names(["runtime", "test", "virtual", "go", "rust"])
    done = run("apt-get", *options, "install", "--simulate", "--yes", "--no-install-recommends", *wanted)
    installed = set(re.findall(r"^Inst (\S+)", done.stdout, flags=re.MULTILINE))
    assert set(wanted) - installed == set()


def small_packages(folder: Path, wanted: list[str], repositories: dict[str, str]) -> None:
    """Build a package of one file for each name, and a repository of each kind, as rpmbuild and createrepo_c make them."""
    parts = "".join(
        f"%package -n {name}\nSummary: {name}\nRecommends: nobody-wants-this\n%description -n {name}\n%files -n {name}\n/opt/el9/{name}\n"
        for name in [*wanted, "nobody-wants-this"]
    )
    head = "Name: el9\nVersion: 1\nRelease: 1\nSummary: small packages\nLicense: Apache-2.0\nBuildArch: noarch\n%description\n"
    made = "%install\nmkdir -p %{buildroot}/opt/el9\n" + "".join(
        f"echo {name} > %{{buildroot}}/opt/el9/{name}\n" for name in [*wanted, "nobody-wants-this"]
    )
    (folder / "el9.spec").write_text(head + parts + made)
    run(
        "rpmbuild",
        "-bb",
        "--quiet",
        f"--define=_topdir {folder}/build",
        f"--define=_rpmdir {folder}/rpms",
        folder / "el9.spec",
    )
    for kind in ("baseos", "crb", "epel"):
        (folder / kind).mkdir()
        for file in (folder / "rpms" / ARCHITECTURE).iterdir():
            if repositories.get(file.name.rsplit("-", 2)[0], "baseos") == kind:
                shutil.copy(file, folder / kind)
        run("createrepo_c", "--quiet", folder / kind)


@pytest.mark.systems
def test_the_set_up_on_almalinux_9_installs_by_dnf_and_says_what_is_to_be_switched_on(tmp_path: Path) -> None:
    """A real dnf and rpm, with an empty database and os-release of AlmaLinux 9, in a layer over this machine's root. Needs root."""
    (tmp_path / "os-release").write_text(ALMALINUX)
    wanted = names(["runtime"], tmp_path / "os-release")
    repositories = dict(re.findall(r"(\S+)@(\S+)", (BOOTSTRAP / "packages.txt").read_text()))
    small_packages(tmp_path, wanted, repositories)
    (tmp_path / "repos").mkdir()
    for kind in ("baseos", "crb", "epel"):
        (tmp_path / "repos" / f"{kind}.repo").write_text(
            f"[{kind}]\nname={kind}\nbaseurl=file://{tmp_path}/{kind}\ngpgcheck=0\nenabled={int(kind == 'baseos')}\n"
        )
    layer, root = tmp_path / "layer", tmp_path / "root"
    for folder in (layer, root):
        folder.mkdir()
    script = f"""
        mount -t tmpfs none {layer}; mkdir {layer}/upper {layer}/work
        mount -t overlay -o lowerdir=/,upperdir={layer}/upper,workdir={layer}/work none {root}
        mount --rbind /dev {root}/dev; mount -t proc none {root}/proc; mkdir -p {root}{tmp_path}; mount --bind {tmp_path} {root}{tmp_path}
        rm -rf {root}/var/lib/rpm {root}/etc/os-release {root}/etc/yum.repos.d {root}/var/cache/dnf
        cp {tmp_path}/os-release {root}/etc/os-release; cp -r {tmp_path}/repos {root}/etc/yum.repos.d; chroot {root} rpm --initdb
        cp -r {BOOTSTRAP} {root}/opt/bootstrap
        set_up="env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot {root} /opt/bootstrap/packages.sh"
        if $set_up 2>&1; then exit 9; fi; echo ==
        sed -i s/enabled=0/enabled=1/ {root}/etc/yum.repos.d/*.repo
        $set_up 2>&1; echo ==; $set_up 2>&1; echo ==
        chroot {root} rpm --query --all --queryformat '%{{NAME}}\\n' | sort; cat {root}/opt/el9/fio
    """
    done = run("unshare", "--mount", "--pid", "--fork", "sh", "-c", textwrap.dedent(f"set -e\n{script}"))
    first, second, third, installed = done.stdout.split("==\n")
    for name, kind in repositories.items():
        assert f"no repository that is switched on has {name} (it is in {kind.upper()})" in first
    assert first.count("no repository that is switched on") == len(repositories)
    assert "dnf install dnf-plugins-core epel-release && dnf config-manager --set-enabled crb" in first
    assert f"packages: installing {len(wanted)}: fio " in second
    assert f"packages: all {len(wanted)} packages present after " in second
    assert third == f"packages: all {len(wanted)} packages present\n"
    assert installed.split() == [*sorted(wanted), "fio"]  # no weak dependency


def wheel(folder: Path, name: str, files: dict[str, bytes], executable: str = "") -> str:
    """Write a wheel of version 1 and return its line in a list of requirements."""
    information = f"{name}-1.dist-info"
    held = {
        **files,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n".encode(),
        f"{information}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()},{len(text)}\n"
        for path, text in held.items()
    )
    file = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as stream:
        for path, text in {**held, f"{information}/RECORD": f"{record}{information}/RECORD,,\n".encode()}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if path == executable else 0o100644) << 16
            stream.writestr(entry, text)
    return f"{name}==1 \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


BACKEND = """
import zipfile
def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "bench-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{wheel_directory}/{name}", "w") as stream:
        stream.writestr("bench-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: bench\\nVersion: 1\\n")
        stream.writestr("bench-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        stream.writestr("bench-1.dist-info/RECORD", "")
    return name
"""


@pytest.mark.systems
@pytest.mark.parametrize("forged", [False, True])
def test_the_python_environment_is_made_from_a_folder_of_wheels_without_a_network(tmp_path: Path, forged: bool) -> None:
    """pip and uv take what the folder has, by the lists' hashes. There is no network but a loopback that is down. Needs root."""
    clone, wheels = tmp_path / "repo", tmp_path / "wheels"
    shutil.copytree(BOOTSTRAP, clone / "ansible/bootstrap")
    wheels.mkdir()
    imported = re.search(
        r"^readonly IMPORTED='import (.*)'$", (BOOTSTRAP / "python.sh").read_text(), flags=re.MULTILINE
    )
    assert imported is not None
    modules = {f"{name.replace('.', '/')}.py": b"" for name in imported[1].split(", ")}
    lines = wheel(wheels, "what_a_run_imports", modules)
    uv = "uv-1.data/scripts/uv"
    own = wheel(wheels, "uv", {uv: Path(REPOSITORY / ".venv/bin/uv").read_bytes()}, uv)
    for group in ("uv", "qualify", "fleet", "analysis", "test"):
        (clone / f"ansible/bootstrap/requirements-{group}.txt").write_text(own if group == "uv" else lines)
    if forged:
        wheel(wheels, "what_a_run_imports", {**modules, "other.py": b""})
    (clone / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "bench"\nversion = "1"\n'
    )
    (clone / "setup.py").write_text("")  # its words count when the environment is compared with what it was made from
    (clone / "backend.py").write_text(BACKEND)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    told = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "UV_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        ["unshare", "--net", clone / "ansible/bootstrap/python.sh"], text=True, capture_output=True, timeout=900,
        env={**environment, **told, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}, check=False,
    )  # fmt: skip
    if forged:
        assert done.returncode == 1 and "ash mismatch" in done.stderr
        assert not (clone / ".venv/.bench-requirements").exists()
        return
    assert done.returncode == 0, done.stderr
    assert "python: .venv is ready after " in done.stdout
    module = next(iter(modules))
    assert len(list((clone / ".venv").glob(f"lib/python*/site-packages/{module}"))) == 1
