#!/usr/bin/python
"""List what the candidate offers to a program: processor, C library, shared libraries."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_runtime
short_description: Say what the candidate offers to a program
description:
  - Reads only.
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Read what the candidate offers
  bench_runtime:
"""

RETURN = r"""
runtime:
  description: >-
    C(machine), C(glibc) (empty where the C library is another) and C(libraries) that the loader knows.
  returned: always
  type: dict
"""

import os
import platform
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

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


def output_of(module: AnsibleModule, program: str, *arguments: str) -> str:
    """Run a tool of the system; empty where there is none."""
    path = module.get_bin_path(program, opt_dirs=ADMIN_DIRECTORIES)
    if path is None:
        return ""
    _status, output, _error = module.run_command([path, *arguments], check_rc=True)
    return str(output)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    runtime: dict[str, Any] = {
        "machine": platform.machine(),
        "glibc": glibc_version(),
        "libraries": loader_cache(output_of(module, "ldconfig", "-p")),
    }
    module.exit_json(changed=False, runtime=runtime)


if __name__ == "__main__":
    main()
