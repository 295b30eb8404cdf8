#!/usr/bin/python
"""Choose from a directory of .deb files those that a candidate lacks for the packages that it will get."""

from __future__ import annotations

import glob
import os
import re

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: bench_deb_files
short_description: Choose from a directory of .deb files those that a candidate lacks
description:
  - Runs on the control node, which needs dpkg-deb. Reads only.
  - Follows Pre-Depends and Depends. Versions are left to dpkg, which checks them when it installs.
  - A package that the directory does not have is named in RV(absent), with who needs it; its dependants are not chosen.
options:
  directory:
    description: Where the .deb files are.
    type: path
    required: true
  packages:
    description: Packages that the candidate is to get.
    type: list
    elements: str
    required: true
  installed:
    description: Names that the candidate's packages have or provide.
    type: list
    elements: str
    required: true
  architecture:
    description: The candidate's Debian architecture.
    type: str
    required: true
author:
  - The daq-storage-bench authors
"""

EXAMPLES = r"""
- name: Choose the files for fio
  bench_deb_files:
    directory: /srv/debs
    packages: [fio]
    installed: [libc6, libaio1]
    architecture: amd64
  delegate_to: localhost
"""

RETURN = r"""
files:
  description: The files to install, sorted by name.
  returned: always
  type: list
  elements: str
absent:
  description: By wanted package, what the directory lacks for it.
  returned: always
  type: dict
"""

FIELDS = ("Package", "Architecture", "Pre-Depends", "Depends")
# Package name -> file and its dependencies; each dependency is a list of alternatives.
Offer = dict[str, "tuple[str, list[list[str]]]"]


def dependencies(text: str) -> list[list[str]]:
    """Parse a Depends field: groups of alternatives, versions and architectures dropped."""
    groups = [group.split("|") for group in text.split(",") if group.strip()]
    return [[re.split(r"[\s:(\[]", name.strip(), maxsplit=1)[0] for name in group] for group in groups]


def offered(module: AnsibleModule, directory: str, architecture: str) -> Offer:
    """Read the control fields of every file that the candidate's architecture can take; the last of a name wins."""
    offer: Offer = {}
    tool = module.get_bin_path("dpkg-deb", required=True)
    for path in sorted(glob.glob(os.path.join(directory, "*.deb"))):
        _status, output, _error = module.run_command([tool, "--field", path, *FIELDS], check_rc=True)
        pairs = re.findall(r"^([A-Za-z-]+): (.*(?:\n .*)*)", output, re.MULTILINE)
        fields = {name: value.replace("\n", " ") for name, value in pairs}
        if fields["Architecture"] in (architecture, "all"):
            needs = dependencies(fields.get("Pre-Depends", "")) + dependencies(fields.get("Depends", ""))
            offer[fields["Package"]] = (path, needs)
    return offer


def choose(package: str, offer: Offer, installed: set[str]) -> tuple[dict[str, str], list[str]]:
    """Return the files for one package by name, and the names of the packages that are lacking."""
    chosen: dict[str, str] = {}
    lacking: list[str] = []
    waiting = [(package, package)]
    while waiting:
        name, wanted_by = waiting.pop()
        if name in chosen:
            continue
        if name not in offer:
            lacking.append(name if name == wanted_by else f"{name} (needed by {wanted_by})")
            continue
        chosen[name], needs = offer[name]
        for group in needs:
            if not any(one in installed for one in group):
                waiting.append((next((one for one in group if one in offer), group[0]), name))
    return chosen, lacking


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "installed": {"type": "list", "elements": "str", "required": True},
            "architecture": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    directory = module.params["directory"]
    if not os.path.isdir(directory):
        module.fail_json(msg=f"bench_packages_dir is {directory}, which is no directory on the control node")
    offer = offered(module, directory, module.params["architecture"])
    files: set[str] = set()
    absent: dict[str, list[str]] = {}
    for package in module.params["packages"]:
        chosen, lacking = choose(package, offer, set(module.params["installed"]))
        if lacking:
            absent[package] = sorted(lacking)
        else:
            files.update(chosen.values())
    module.exit_json(changed=False, files=sorted(files), absent=absent)


if __name__ == "__main__":
    main()
