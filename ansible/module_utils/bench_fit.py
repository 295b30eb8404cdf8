"""The rule that says which machine can be a candidate: its Python, processor and C library against what the bench's programs need.

Its syntax is that of Python 3.6, so that a machine whose Python is too old is told so by this rule, and not by a syntax error.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from typing import Any

PYTHON_MIN = (3, 9)
GLIBC_MIN = "2.31"  # of our programs, once they are built (native-writer/old_glibc.cmake)
ADMIN_DIRECTORIES = ("/usr/sbin", "/sbin")  # not on an ordinary user's PATH
SYSTEMS = "Debian 11, Ubuntu 22.04 and Enterprise Linux 9 are the oldest that will do"


def version_key(text: str) -> "tuple[int, ...]":
    """Return a dotted version for comparing."""
    return tuple(int(part) for part in text.split("."))


def glibc_version() -> str:
    """Return the C library's version; empty where it is not glibc, which has no such name."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except ValueError:
        return ""
    return text[len("glibc ") :] if text.startswith("glibc ") else ""


def loader_cache(output: str) -> "list[str]":
    """Return the names in the output of `ldconfig -p`."""
    return sorted(set(re.findall(r"^\s+(\S+) \(", output, re.MULTILINE)))


def runtime() -> "dict[str, Any]":
    """Describe what this machine offers to a program. Raises CalledProcessError or OSError when its loader does not answer."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *ADMIN_DIRECTORIES])
    ldconfig = shutil.which("ldconfig", path=path)
    listed = b""
    if ldconfig and glibc_version():  # another C library's loader keeps no such list
        listed = subprocess.run([ldconfig, "-p"], stdout=subprocess.PIPE, check=True).stdout
    return {
        "machine": platform.machine(),
        "glibc": glibc_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "libraries": loader_cache(listed.decode("utf-8", "replace")),
    }


def program_obstacles(needs: "dict[str, Any]", offered: "dict[str, Any]") -> "list[str]":
    """Compare what one program needs (bench_elf) with what a machine offers; each obstacle names its remedy."""
    if not needs["machine"]:
        return []
    if needs["machine"] != offered["machine"]:
        return [
            f"built for {needs['machine']} and the candidate is {offered['machine']}. Use a control node of the candidate's kind, "
            "where `make setup` builds it"
        ]
    found = []
    least = needs["glibc_min"]
    if least and not offered["glibc"]:
        found.append(
            f"needs glibc {least} and the candidate has another C library (musl?). Install a system with glibc there: {SYSTEMS}"
        )
    elif least and version_key(least) > version_key(offered["glibc"]):
        found.append(
            f"needs glibc {least} and the candidate has {offered['glibc']}. Install a newer system there: {SYSTEMS}"
        )
    absent = sorted(set(needs["libraries"]) - set(offered["libraries"]))
    if absent:
        found.append(
            f"the candidate lacks {', '.join(absent)}. Build it with make native-portable, which does not need them, and name "
            "build/native-writer/portable/daqwriter with bench_daqwriter_source; the folder lib that the build made stays beside it"
        )
    return found


def obstacles(programs: "dict[str, dict[str, Any]]", offered: "dict[str, Any]") -> "list[str]":
    """Return all that keeps a machine from being a candidate. `programs`: what each of ours needs."""
    found = {}  # type: dict[str, list[str]]
    for name, needs in programs.items():
        for text in program_obstacles(needs, offered):
            found.setdefault(text, []).append(name)
    said = [f"{', '.join(names)}: {text}" for text, names in found.items()]
    if version_key(offered["python"]) < PYTHON_MIN:
        least = ".".join(map(str, PYTHON_MIN))
        said.append(
            f"its Python is {offered['python']}, and Ansible and the agent need {least} or newer. Install one there, and name it in "
            "ansible_python_interpreter"
        )
    return said


def unbuilt() -> "dict[str, Any]":
    """Return what a program of ours needs that is yet to be built here."""
    return {"machine": platform.machine(), "glibc_min": GLIBC_MIN, "libraries": [], "carried": []}
