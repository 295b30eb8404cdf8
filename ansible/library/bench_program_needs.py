#!/usr/bin/python
"""List a program's needs from the machine that will run it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_program_needs
short_description: Say what a program needs of the machine that is to run it
description:
  - Reads the program's file on the control node. Runs nothing, writes nothing.
options:
  path:
    description: The program.
    type: path
    required: true
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Read what daqwriter needs
  bench_program_needs:
    path: build/native-writer/portable/daqwriter
  delegate_to: localhost
"""

RETURN = r"""
needs:
  description: >-
    C(machine) as uname -m names it (empty for a script), C(glibc_min), C(libraries) that the machine must have, and
    C(carried), the files beside the program that must go with it.
  returned: always
  type: dict
  sample: {machine: x86_64, glibc_min: "2.34", libraries: [], carried: [/build/lib/libisal.so.2]}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_elf import needs_of


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"path": {"type": "path", "required": True}}, supports_check_mode=True)
    path = module.params["path"]
    try:
        needs = needs_of(path)
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be read: {error.strerror}. Build it (make build), or correct the path")
    except (ValueError, IndexError) as error:
        module.fail_json(msg=f"{path} is damaged or of a kind that the bench does not know: {error}. Build it again")
    module.exit_json(changed=False, needs=needs)


if __name__ == "__main__":
    main()
