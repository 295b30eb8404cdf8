#!/usr/bin/env python3
"""Lays the Ansible content out as a collection: `collection.py FOLDER` makes FOLDER/ansible_collections/daq/storage_bench.

The bench itself runs the content from where it lies, by ansible.cfg. In a collection plugins have other folders, our module utilities
other names, and filters of ours are found by their whole name only: that is all that is changed. Promise: the same sources give the same
files; an earlier layout is replaced as a whole."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ANSIBLE = Path(__file__).resolve().parents[1]
NAMESPACE, NAME = "daq", "storage_bench"
WHOLE = f"{NAMESPACE}.{NAME}"
FOLDERS = {
    "library": "plugins/modules",
    "module_utils": "plugins/module_utils",
    "action_plugins": "plugins/action",
    "filter_plugins": "plugins/filter",
    "roles": "roles",
    "playbooks": "playbooks",
    "meta": "meta",
    "sanity": "tests/sanity",
}
FILES = ("galaxy.yml", "README.md", "../LICENSE")
UTILITY = re.compile(r"\bansible\.module_utils(\.bench_| import bench_)")


def filters() -> list[str]:
    """The names that our filter plugins give."""
    found = []
    for file in sorted((ANSIBLE / "filter_plugins").glob("*.py")):
        _, _, named = file.read_text(encoding="utf-8").partition("def filters(self)")
        found += re.findall(r'"(\w+)": \w+', named)
    return found


def content() -> Iterator[tuple[str, bytes]]:
    """Each file of the collection, by its path there."""
    ours = re.compile(r"(?<=\| )(" + "|".join(map(re.escape, filters())) + r")\b")
    for name in FILES:
        yield Path(name).name, (ANSIBLE / name).read_bytes()
    for folder, place in FOLDERS.items():
        for file in sorted((ANSIBLE / folder).rglob("*")):
            if not file.is_file() or "__pycache__" in file.parts:
                continue
            text = file.read_text(encoding="utf-8")
            text = UTILITY.sub(rf"ansible_collections.{WHOLE}.plugins.module_utils\1", text)
            if file.suffix in (".yml", ".j2"):
                text = ours.sub(lambda found: f"{WHOLE}.{found[1]}", text)
            yield f"{place}/{file.relative_to(ANSIBLE / folder)}", text.encode()


def main(folder: Path) -> int:
    target = folder / "ansible_collections" / NAMESPACE / NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as beside:
        made = Path(beside, NAME)
        for path, data in content():
            file = made / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        with suppress(FileNotFoundError):
            shutil.rmtree(target)
        made.rename(target)
    print(target)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: collection.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
