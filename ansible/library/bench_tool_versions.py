#!/usr/bin/python
"""Find which tools are on the candidate and what version each gives itself."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_tool_versions
short_description: Find which tools are on the candidate and what version each gives itself
description:
  - Runs each tool's version command and picks the version from its first output. Reads only.
  - A tool that is not there is named in RV(missing); that is not an error here.
options:
  tools:
    description: For each tool's name, the command that prints its version.
    type: dict
    required: true
  with_runtime:
    description: Whether to return RV(runtime), too.
    type: bool
    default: false
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Find fio
  bench_tool_versions:
    tools:
      fio: [fio, --version]
"""

RETURN = r"""
versions:
  description: Version by name, of the tools that are there. V(unstated) where a tool prints none.
  returned: always
  type: dict
  sample: {fio: "3.33"}
missing:
  description: Names of the tools that are not there.
  returned: always
  type: list
  elements: str
paths:
  description: Absolute path by name, of the tools that are there.
  returned: always
  type: dict
runtime:
  description: >-
    What the candidate offers to a program. C(machine), C(glibc) (empty where the C library is another), C(python) and C(libraries) that
    the loader knows.
  returned: if asked for
  type: dict
failed_tools:
  description: By name, what a tool said that is there but whose version command failed.
  returned: always
  type: dict
"""

import os
import re
import subprocess
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_fit import runtime

ADMIN_DIRECTORIES = ["/usr/sbin", "/sbin", "/usr/local/sbin"]  # not on an ordinary user's PATH


def version_in(output: str) -> str:
    """Return the first version number in a tool's output."""
    found = re.search(r"\d+\.\d+(?:[.\-+][0-9A-Za-z]+)*", output)
    return found.group(0) if found else "unstated"


def find(module: AnsibleModule, command: list[str]) -> str | None:
    """Return the path of a command's program; None when that, or a file that the command names, is not there."""
    absent_files = [word for word in command if word.startswith("/") and not os.path.exists(word)]
    program = module.get_bin_path(command[0], opt_dirs=ADMIN_DIRECTORIES)
    return None if absent_files else program


def probe(module: AnsibleModule, program: str, command: list[str]) -> tuple[str, str]:
    """Return a tool's version and its complaint, if any."""
    if len(command) == 1:
        return "unstated", ""  # a tool without a version command
    status, output, error = module.run_command([program, *command[1:]])
    if status != 0:
        lines = (error or output).strip().splitlines()
        return "unstated", f"exit status {status}: {lines[-1] if lines else 'no output'}"
    return version_in(output or error), ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "tools": {"type": "dict", "required": True},
            "with_runtime": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    versions: dict[str, str] = {}
    paths: dict[str, str] = {}
    complaints: dict[str, str] = {}
    missing: list[str] = []
    tools: dict[str, Any] = module.params["tools"]
    for name, command in tools.items():
        words = [str(word) for word in command]
        program = find(module, words)
        if program is None:
            missing.append(name)
            continue
        paths[name] = program
        versions[name], complaint = probe(module, program, words)
        if complaint:
            complaints[name] = complaint
    found: dict[str, Any] = {}
    if module.params["with_runtime"]:
        try:
            found["runtime"] = runtime()
        except (OSError, subprocess.SubprocessError) as error:
            module.fail_json(
                msg=f"the loader's list of libraries cannot be read: {error}. Repair ldconfig on the candidate"
            )
    module.exit_json(changed=False, versions=versions, paths=paths, missing=missing, failed_tools=complaints, **found)


if __name__ == "__main__":
    main()
