#!/usr/bin/python
"""Put files into a folder of the candidate, out of one archive."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_programs
short_description: Bring files to a folder of the candidate in one archive
description:
  - Compares the files with those of the folder. Those that differ travel in one archive; each replaces its predecessor as a whole.
  - Makes the folder, and the folders of the names within it, where they are absent.
options:
  folder:
    description: Absolute path of the folder on the candidate.
    type: path
    required: true
  files:
    description: The files.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Path below O(folder).
        type: str
        required: true
      mode:
        description: Permissions, in octal digits.
        type: str
        required: true
      source:
        description: Path on the control node.
        type: path
      sha256:
        description: Set by the action of this name.
        type: str
        default: ""
  archive:
    description: Set by the action of this name.
    type: path
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Bring daqwriter
  bench_programs:
    folder: /opt/daq-storage-bench
    files:
      - {name: daqwriter, mode: "0755", source: build/native-writer/daqwriter}
"""

RETURN = r"""
differ:
  description: The names of the files that were not there, or otherwise.
  returned: always
  type: list
  elements: str
  sample: [daqwriter]
"""

import hashlib
import os
import shutil
import tarfile
from typing import Any

from ansible.module_utils.basic import AnsibleModule


def checksum(path: str) -> str:
    """Return the file's SHA-256; nothing where no such file is."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for part in iter(lambda: stream.read(1 << 20), b""):
                digest.update(part)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()


def make_folder(module: AnsibleModule, path: str) -> bool:
    """Make a folder that all may read, and say whether it was absent or otherwise."""
    absent = not os.path.isdir(path)
    if absent and not module.check_mode:
        before = os.umask(0o022)  # a hardened system's would keep others out of the new folders
        os.makedirs(path, mode=0o755)
        os.umask(before)
    return absent or bool(module.set_mode_if_different(path, "0755", False))


def put(module: AnsibleModule, archive: tarfile.TarFile, one: dict[str, Any], path: str) -> None:
    """Replace one file as a whole, once it has arrived whole."""
    stream = archive.extractfile(one["name"])
    if stream is None:
        raise ValueError(f"{one['name']} is no file in the archive that was sent")
    arrived = os.path.join(module.tmpdir, "arrived")
    with open(arrived, "wb") as target:
        shutil.copyfileobj(stream, target)
    if checksum(arrived) != one["sha256"]:
        raise ValueError(f"{one['name']} did not arrive whole. Run it again")
    module.atomic_move(arrived, path)


def run(module: AnsibleModule) -> tuple[bool, list[str]]:
    """Compare, and put into place what came; return whether anything changes, and which files differ."""
    folder, files = module.params["folder"], module.params["files"]
    paths = {one["name"]: os.path.join(folder, one["name"]) for one in files}
    changed = False
    if module.params["archive"] is None:
        for path in sorted({folder, *map(os.path.dirname, paths.values())}):
            changed = make_folder(module, path) or changed
    differ = [one["name"] for one in files if checksum(paths[one["name"]]) != one["sha256"]]
    if module.params["archive"] is not None:
        with tarfile.open(module.params["archive"]) as archive:
            for one in files:
                if one["name"] in differ:
                    put(module, archive, one, paths[one["name"]])
    for one in files:
        if os.path.exists(paths[one["name"]]):
            changed = bool(module.set_mode_if_different(paths[one["name"]], one["mode"], False)) or changed
    return changed or bool(differ), differ


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "files": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "mode": {"type": "str", "required": True},
                    "source": {"type": "path"},
                    "sha256": {"type": "str", "default": ""},
                },
            },
            "archive": {"type": "path"},
        },
        supports_check_mode=True,
    )
    wrong = [
        one["name"] for one in module.params["files"] if os.path.isabs(one["name"]) or ".." in one["name"].split("/")
    ]
    if wrong or not os.path.isabs(module.params["folder"]):
        module.fail_json(
            msg=f"{wrong[0] if wrong else module.params['folder']} is no path below an absolute folder; nothing was written"
        )
    try:
        changed, differ = run(module)
    except (OSError, ValueError, KeyError, tarfile.TarError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, differ=differ)


if __name__ == "__main__":
    main()
