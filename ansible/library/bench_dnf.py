#!/usr/bin/python
"""Install packages by dnf, from the machine's own repositories or from a folder, and replace none that is there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_dnf
short_description: Install packages by dnf and replace none that is there
description:
  - dnf decides on the candidate which further packages are needed. No package of the candidate is removed, upgraded, downgraded or
    obsoleted, no weak dependency is installed; a package that would need it is named in RV(absent).
  - With O(folder) the candidate's own repositories, plugins and caches are neither used nor changed.
options:
  packages:
    description: Packages that the candidate is to get.
    type: list
    elements: str
    required: true
  folder:
    description: >-
      A folder on the candidate with .rpm files and the C(repodata) that createrepo_c made of them. The task leaves out
      O(packages) that it cannot bring; without a folder all of them must be there.
    type: path
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Install fio
  bench_dnf:
    packages: [fio]
"""

RETURN = r"""
packages:
  description: The packages of O(packages) that were installed, or would be.
  returned: always
  type: list
  elements: str
absent:
  description: By package that cannot be installed, dnf's reason.
  returned: always
  type: dict
"""

import re
import tempfile

from ansible.module_utils.basic import AnsibleModule

OWN = "daq-bench"  # the name of our repository while dnf runs
ABORTED = "Operation aborted."  # what --assumeno says of a transaction that would have gone well


def reason(text: str) -> str:
    """Return dnf's own sentences on why it refuses."""
    found = re.findall(
        r"^(?:Error: (?!Unable to find a match|\s*$)|No match for argument: | +- | Problem[ \d]*: )(.+)$",
        text,
        re.MULTILINE,
    )
    return "; ".join(dict.fromkeys(" ".join(line.split()) for line in found)) or " ".join(text.split())[-400:]


class Dnf:
    """dnf over the machine's own repositories, or over the one in `folder` alone."""

    def __init__(self, module: AnsibleModule, folder: str | None, cache: str) -> None:
        """Find dnf and what is installed: the packages of these names are not offered to it, so that it cannot replace one."""
        self._module = module
        rpm = [module.get_bin_path("rpm", required=True), "--query", "--all", "--queryformat", "%{NAME}\n"]
        installed = sorted(set(module.run_command(rpm, check_rc=True)[1].split()))
        self._command = [
            module.get_bin_path("dnf", required=True),
            "--setopt=install_weak_deps=False",
            "--setopt=obsoletes=False",
        ]
        if installed:
            self._command.append(f"--exclude={','.join(installed)}")
        if folder:
            self._command += [
                *(
                    "--noplugins",
                    "--disablerepo=*",
                    f"--repofrompath={OWN},file://{folder}",
                    f"--setopt={OWN}.gpgcheck=0",
                ),
                f"--setopt=cachedir={cache}",
            ]

    def run(self, *arguments: str) -> tuple[int, str]:
        """Return the exit status and the text of `dnf`."""
        status, output, error = self._module.run_command(
            [*self._command, *arguments], environ_update={"LC_ALL": "C.UTF-8", "LANGUAGE": "C"}
        )
        return status, output + error

    def against(self, packages: list[str]) -> str:
        """Return the reason why these cannot be installed beside each other; empty where they can."""
        status, text = self.run("--assumeno", "install", *packages)
        return "" if status == 0 or ABORTED in text else reason(text)

    def plan(self, packages: list[str]) -> tuple[list[str], dict[str, str]]:
        """Choose the packages that can be installed beside each other, the first ones first; the others with dnf's reason."""
        chosen: list[str] = []
        absent = {}
        for package in packages:
            against = self.against([*chosen, package])
            if against:
                absent[package] = against
            else:
                chosen.append(package)
        return chosen, absent


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"packages": {"type": "list", "elements": "str", "required": True}, "folder": {"type": "path"}},
        supports_check_mode=True,
    )
    folder = module.params["folder"]
    with tempfile.TemporaryDirectory(prefix="bench-dnf-") as cache:
        dnf = Dnf(module, folder, cache)
        chosen, absent = dnf.plan(module.params["packages"])
        if absent and not folder:
            module.fail_json(
                msg=f"dnf cannot install {', '.join(absent)} without replacing a package of the candidate, or has no such package: "
                f"{'; '.join(dict.fromkeys(absent.values()))}. Remedy: switch on the repository that has it (CRB, EPEL), bring the"
                " candidate up to date, or install it by hand; then provision again"
            )
        if chosen and not module.check_mode:
            status, text = dnf.run("--assumeyes", "install", *chosen)
            if status != 0:
                module.fail_json(msg=f"dnf install {' '.join(chosen)}: exit status {status}: {reason(text)}")
    module.exit_json(changed=bool(chosen), packages=chosen, absent=absent)


if __name__ == "__main__":
    main()
