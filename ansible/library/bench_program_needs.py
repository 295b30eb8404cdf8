#!/usr/bin/python
"""Say what the bench's programs need, and what of it a machine does not have."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_program_needs
short_description: Say what programs need of the machine that is to run them
description:
  - Reads the programs' files on the control node. Runs nothing, writes nothing.
options:
  paths:
    description: The programs.
    type: list
    elements: path
    required: true
  runtime:
    description: What the machine offers, as bench_tool_versions found it there. Without it nothing is compared.
    type: dict
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Compare what daqwriter needs with what the candidate offers
  bench_program_needs:
    paths: [build/native-writer/portable/daqwriter]
    runtime: "{{ offered.runtime }}"
  delegate_to: localhost
"""

RETURN = r"""
needs:
  description: >-
    By program's path C(machine) as uname -m names it (empty for a script), C(glibc_min), C(libraries) that the machine must have, and
    C(carried), the files beside the program that must go with it.
  returned: always
  type: dict
  sample: {/build/daqwriter: {machine: x86_64, glibc_min: "2.31", libraries: [], carried: [/build/lib/libisal.so.2]}}
obstacles:
  description: What keeps the machine from being a candidate, each with its remedy.
  returned: always
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_elf import needs_of
from ansible.module_utils.bench_fit import obstacles


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "required": True},
            "runtime": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    needs = {}
    for path in module.params["paths"]:
        try:
            needs[path] = needs_of(path)
        except OSError as error:
            module.fail_json(msg=f"{path} cannot be read: {error.strerror}. Build it (make build), or correct the path")
        except ValueError as error:
            module.fail_json(
                msg=f"{path} is damaged or of a kind that the bench does not know: {error}. Build it again"
            )
    offered = module.params["runtime"]
    found = obstacles({os.path.basename(path): one for path, one in needs.items()}, offered) if offered else []
    module.exit_json(changed=False, needs=needs, obstacles=found)


if __name__ == "__main__":
    main()
