#!/usr/bin/python
"""Plan or carry out the installation of packages from a folder of .deb files by apt, without network."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_apt_folder
short_description: Plan or carry out the installation of packages from a folder of .deb files
description:
  - apt decides on the candidate, with its C(file:) repository, which files are needed, so that versions, conflicts and
    alternatives count. Sources, lists, cache, settings and hooks of the candidate's own apt are neither used nor changed.
  - No package of the candidate is removed, upgraded or downgraded; packages that would need it are named in RV(absent).
  - Services that the packages bring are not started, because smartd and the like would disturb a measurement.
options:
  index:
    description: The folder's C(Packages) file, as text; C(Filename) of each package is relative to O(folder).
    type: str
    required: true
  packages:
    description: Packages that the candidate is to get.
    type: list
    elements: str
    required: true
  folder:
    description: The folder on the candidate to install from. Without it nothing is installed, only the plan returned.
    type: path
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Choose the files for fio
  bench_apt_folder:
    index: "{{ index.stdout }}"
    packages: [fio]
"""

RETURN = r"""
packages:
  description: The packages of O(packages) that can be installed.
  returned: always
  type: list
  elements: str
files:
  description: The files that they need, as the index names them.
  returned: always
  type: list
  elements: str
absent:
  description: By package that cannot be installed, apt's reason.
  returned: always
  type: dict
"""

import os
import re
import tempfile
from typing import Any

from ansible.module_utils.basic import AnsibleModule

# Debian's way to forbid the start of services (invoke-rc.d): this file, with this exit status.
POLICY = "/usr/sbin/policy-rc.d"
POLICY_TEXT = "#!/bin/sh\nexit 101\n"
CONFIGURATION = """Dir::Etc "{0}/etc";
Dir::State::lists "{0}/lists";
Dir::Cache "{0}/cache";
APT::Install-Recommends "false";
APT::Get::Remove "false";
APT::Color "0";
DPkg::Lock::Timeout "120";
"""
# Installed versions stay, whatever else the folder has of them.
PREFERENCES = "Package: *\nPin: release a=now\nPin-Priority: 1001\n"
GENERAL = ("E: Unable to correct problems", "E: The following information")


def reason(text: str) -> str:
    """Return apt's own sentences on why it refuses."""
    lines = [
        line
        for line in text.splitlines()
        if re.match(r"E: | \S+ : | {4,}[A-Z]\w*: ", line) and not line.startswith(GENERAL)
    ]
    return " ".join(" ".join(line.split()) for line in lines) or " ".join(text.split())[-400:]


def changes(text: str) -> list[str]:
    """Return the packages of the candidate that a simulated installation would remove or replace."""
    return re.findall(r"^(?:Remv|Purg|Inst(?= \S+ \[)) (\S+)", text, re.MULTILINE)


def files(text: str, index: str) -> list[str]:
    """Return the index's files for the packages that a simulated installation would bring."""
    offered = {}
    for paragraph in re.split(r"\n\s*\n", index):
        fields = dict(re.findall(r"^(Package|Version|Filename): *(\S+)", paragraph, re.MULTILINE))
        if len(fields) == 3:
            offered[fields["Package"], fields["Version"]] = fields["Filename"]
    return sorted({offered[name] for name in re.findall(r"^Inst (\S+?)(?::\S+)? \((\S+)", text, re.MULTILINE)})


class Apt:
    """apt with settings, sources and lists of its own in one folder."""

    def __init__(self, module: AnsibleModule, folder: str, index: str) -> None:
        """Write its files and read the index."""
        self._module, self._folder = module, folder
        own = os.path.join(folder, "apt")
        self._environment = {"APT_CONFIG": f"{own}/apt.conf", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        for name in ("etc/apt.conf.d", "etc/preferences.d", "lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(own, name), exist_ok=True)
        texts = {
            "Packages": index,
            "apt/apt.conf": CONFIGURATION.format(own),
            "apt/etc/preferences": PREFERENCES,
            "apt/etc/sources.list": f"deb [trusted=yes] file:{folder} ./\n",
        }
        for name, text in texts.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        os.chmod(folder, 0o755)  # apt reads as a user without rights
        self.must("update")

    def run(self, *arguments: str) -> tuple[int, str]:
        """Return the exit status and the text of `apt-get`."""
        command = [self._module.get_bin_path("apt-get", required=True), "--quiet", "--yes", *arguments]
        status, output, error = self._module.run_command(command, environ_update=self._environment)
        return status, output + error

    def must(self, *arguments: str) -> str:
        """Return the text of an `apt-get` that succeeds; a failure ends the module."""
        status, text = self.run(*arguments)
        if status != 0:
            self._module.fail_json(
                msg=f"apt-get {' '.join(arguments)}: exit status {status}: {reason(text)}. Remedy: put the packages that"
                " it names into bench_packages_dir (of the candidate's own release), then provision again"
            )
        return text

    def simulated(self, packages: list[str]) -> tuple[str, str]:
        """Return what an installation would do, were removals allowed, and the reason against it (empty where there is none)."""
        status, text = self.run("--simulate", "--option=APT::Get::Remove=true", "install", *packages)
        if status != 0:
            return text, reason(text)
        changed = ", ".join(changes(text))
        return text, f"{packages[-1]} would remove or replace {changed} of the candidate" if changed else ""

    def plan(self, packages: list[str]) -> dict[str, Any]:
        """Choose the packages that can be installed beside each other, the first ones first, and their files."""
        chosen: list[str] = []
        absent, text = {}, ""
        for package in packages:
            wanted, against = self.simulated([*chosen, package])
            if against:
                absent[package] = against
            else:
                chosen, text = [*chosen, package], wanted
        return {"packages": chosen, "absent": absent, "text": text}

    def install(self, packages: list[str]) -> str:
        """Install under our policy, or under the machine's own where it has one."""
        ours = not os.path.exists(POLICY)
        if ours:
            with open(POLICY, "w", encoding="utf-8") as stream:
                stream.write(POLICY_TEXT)
            os.chmod(POLICY, 0o755)
        try:
            return self.must("install", *packages)
        finally:
            if ours:
                os.unlink(POLICY)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "index": {"type": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "folder": {"type": "path"},
        },
        supports_check_mode=True,
    )
    index, folder = module.params["index"], module.params["folder"]
    with tempfile.TemporaryDirectory(prefix="bench-apt-") as temporary:
        apt = Apt(module, temporary if module.check_mode or not folder else folder, index)
        plan = apt.plan(module.params["packages"])
        if folder and plan["absent"]:
            module.fail_json(msg=f"apt cannot install from {folder}: {'; '.join(plan['absent'].values())}")
        if folder and not module.check_mode:
            plan["output"] = apt.install(plan["packages"])
    text = plan.pop("text")
    module.exit_json(changed=bool(folder and plan["packages"]), files=files(text, index), **plan)


if __name__ == "__main__":
    main()
