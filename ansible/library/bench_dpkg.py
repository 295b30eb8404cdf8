#!/usr/bin/python
"""Install .deb files that are on the candidate already, without network, without starting services."""

from __future__ import annotations

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: bench_dpkg
short_description: Install .deb files without network and without starting services
description:
  - One call of dpkg for all files, so that it can order them. Services that the packages bring are not started, because
    smartd and the like would disturb a measurement.
options:
  files:
    description: The .deb files on the candidate.
    type: list
    elements: path
    required: true
author:
  - The daq-storage-bench authors
"""

EXAMPLES = r"""
- name: Install fio
  bench_dpkg:
    files: [/tmp/fio_3.33-3_amd64.deb]
"""

RETURN = r"""
output:
  description: dpkg's output.
  returned: changed
  type: str
"""

# Debian's way to forbid the start of services (invoke-rc.d): this file, with this exit status.
POLICY = "/usr/sbin/policy-rc.d"
POLICY_TEXT = "#!/bin/sh\nexit 101\n"


def install(module: AnsibleModule, files: list[str]) -> tuple[int, str]:
    """Run dpkg under our policy, or under the machine's own where it has one."""
    environment: dict[str, Any] = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    ours = not os.path.exists(POLICY)
    if ours:
        with open(POLICY, "w", encoding="utf-8") as stream:
            stream.write(POLICY_TEXT)
        os.chmod(POLICY, 0o755)
    try:
        command = [module.get_bin_path("dpkg", required=True), "--install", *files]
        status, output, error = module.run_command(command, environ_update=environment)
    finally:
        if ours:
            os.unlink(POLICY)
    return status, (output + error).strip()


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"files": {"type": "list", "elements": "path", "required": True}}, supports_check_mode=True
    )
    files = module.params["files"]
    if module.check_mode:
        module.exit_json(changed=bool(files), output="")
    status, output = install(module, files)
    if status != 0:
        last = " ".join(output.splitlines()[-4:])
        module.fail_json(
            msg=f"dpkg --install failed with exit status {status}: {last}. Remedy: put the packages that it names into"
            " bench_packages_dir (of the candidate's own release), then provision again"
        )
    module.exit_json(changed=True, output=output)


if __name__ == "__main__":
    main()
