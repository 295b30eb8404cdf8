#!/usr/bin/python
"""Remove files and folders in one call, and the folder that held them if nothing else is in it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_absent
short_description: Remove files and folders in one call
description:
  - Removes each path that exists, a folder with its content. A link is removed, never what it leads to.
  - One interpreter start for all of them, where a loop over M(ansible.builtin.file) takes one for each.
options:
  paths:
    description: What to remove.
    type: list
    elements: path
    required: true
  unit:
    description:
      - Name of the systemd unit whose file is the first of O(paths). Where that is there, the unit is stopped before anything is
        removed, and systemd reads its units again afterwards.
    type: str
    default: ""
  empty_folder:
    description: Removed afterwards if nothing is in it. Never C(changed).
    type: path
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Remove the bench's programs
  bench_absent:
    paths: [/opt/bench/daqwriter, /opt/bench/lib]
    empty_folder: /opt/bench
"""

RETURN = r"""
removed:
  description: The paths that were there, in the order of O(paths).
  returned: always
  type: list
  sample: [/opt/bench/daqwriter]
"""

import os
import shutil

from ansible.module_utils.basic import AnsibleModule


def remove(path: str) -> None:
    """Remove a file, a link or a folder with its content."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def systemctl(module: AnsibleModule, *words: str) -> None:
    """Run systemctl, and fail with what it says."""
    status, output, error = module.run_command([module.get_bin_path("systemctl", required=True), *words])
    if status != 0:
        module.fail_json(msg=f"systemctl {' '.join(words)}: exit status {status}: {(error or output).strip()}")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "required": True},
            "unit": {"type": "str", "default": ""},
            "empty_folder": {"type": "path"},
        },
        supports_check_mode=True,
    )
    wrong = [path for path in module.params["paths"] if not os.path.isabs(path)]
    if wrong:
        module.fail_json(msg=f"paths: {wrong[0]} is no absolute path; nothing was removed")
    there = [path for path in module.params["paths"] if os.path.lexists(path)]
    unit = module.params["unit"] if there[:1] == module.params["paths"][:1] else ""
    if not module.check_mode:
        if unit:
            systemctl(module, "stop", unit)
        for path in there:
            try:
                remove(path)
            except OSError as error:
                module.fail_json(msg=f"{path} cannot be removed: {error.strerror}")
        folder = module.params["empty_folder"]
        try:
            if folder and os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
        except OSError as error:
            module.fail_json(msg=f"{folder} cannot be removed: {error.strerror}")
        if unit:
            systemctl(module, "daemon-reload")
    module.exit_json(changed=bool(there), removed=there)


if __name__ == "__main__":
    main()
