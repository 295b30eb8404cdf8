#!/usr/bin/python
"""List what the candidate offers to a program: processor, C library, Python, shared libraries."""

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
    C(machine), C(glibc) (empty where the C library is another), C(python) and C(libraries) that the loader knows.
  returned: always
  type: dict
"""

import subprocess

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_fit import runtime


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    try:
        offered = runtime()
    except (OSError, subprocess.SubprocessError) as error:
        module.fail_json(
            msg=f"the loader's list of libraries cannot be read: {error}. Repair ldconfig on the candidate"
        )
    module.exit_json(changed=False, runtime=offered)


if __name__ == "__main__":
    main()
