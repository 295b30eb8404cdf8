#!/usr/bin/python
"""List what the candidate offers to a program: processor, C library, shared libraries, installed Debian packages."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: bench_runtime
short_description: Say what the candidate offers to a program
description:
  - Reads only.
options:
  packages:
    description: Whether the installed Debian packages are listed.
    type: bool
    default: false
author:
  - The daq-storage-bench authors
"""

EXAMPLES = r"""
- name: Read what the candidate offers
  bench_runtime:
"""

RETURN = r"""
runtime:
  description: >-
    C(machine), C(glibc) (empty where the C library is another), C(libraries) that the loader knows,
    C(dpkg_architecture) and C(packages), the names that installed packages have or provide.
  returned: always
  type: dict
"""

ADMIN_DIRECTORIES = ["/usr/sbin", "/sbin"]  # not on an ordinary user's PATH


def glibc_version() -> str:
    """Return the C library's version; empty where it is not glibc, which has no such name."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except ValueError:
        return ""
    return text[len("glibc ") :] if text.startswith("glibc ") else ""


def loader_cache(output: str) -> list[str]:
    """Return the names in the output of `ldconfig -p`."""
    return sorted(set(re.findall(r"^\s+(\S+) \(", output, re.MULTILINE)))


def package_names(output: str) -> list[str]:
    """Return the names of installed packages and of those they provide, from status, name and provides separated by tabs."""
    names = set()
    for line in output.splitlines():
        status, name, provides = ([*line.split("\t"), "", ""])[:3]
        if status == "installed":
            names.update([name, *re.findall(r"(?:^|,\s*)([a-z0-9][a-z0-9+.-]*)", provides)])
    return sorted(names)


def output_of(module: AnsibleModule, program: str, *arguments: str) -> str:
    """Run a tool of the system; empty where there is none."""
    path = module.get_bin_path(program, opt_dirs=ADMIN_DIRECTORIES)
    if path is None:
        return ""
    _status, output, _error = module.run_command([path, *arguments], check_rc=True)
    return str(output)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"packages": {"type": "bool", "default": False}}, supports_check_mode=True)
    runtime: dict[str, Any] = {
        "machine": platform.machine(),
        "glibc": glibc_version(),
        "libraries": loader_cache(output_of(module, "ldconfig", "-p")),
        "dpkg_architecture": output_of(module, "dpkg", "--print-architecture").strip(),
        "packages": [],
    }
    if module.params["packages"]:
        form = "--showformat=${db:Status-Status}\\t${Package}\\t${Provides}\\n"
        runtime["packages"] = package_names(output_of(module, "dpkg-query", "--show", form))
    module.exit_json(changed=False, runtime=runtime)


if __name__ == "__main__":
    main()
