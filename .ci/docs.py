#!/usr/bin/env python3
"""Checks that the documents agree with the tree: links, make targets, the lists of scenarios and workloads, the length of lines.
Checks also that all prose, of programs too, is plain English (english.py).

Prints each fault with its file and line; exit status 1 if there is one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import english

ROOT = Path(__file__).resolve().parent.parent
LONGEST_LINE = 140  # characters, below docs/
VARIANTS = ("-rehearsal", "-emulated")  # of scenarios, which docs/scenarios.md describes by these names alone
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
MAKE = re.compile(r"`make ([a-z][a-z0-9-]*)")


def documents() -> list[Path]:
    """Every Markdown file that is ours."""
    folders = [
        path
        for path in ROOT.iterdir()
        if path.is_dir() and path.name[0] != "." and path.name not in ("build", "runs", "nightly")
    ]
    return sorted([*ROOT.glob("*.md"), *(file for folder in folders for file in folder.rglob("*.md"))])


def slug(heading: str) -> str:
    """The anchor that a heading gets in a link: lower case, words joined by hyphens, without punctuation."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def anchors(file: Path) -> set[str]:
    return {slug(line.lstrip("#")) for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")}


def dead_links(file: Path, line: str) -> Iterator[str]:
    for target in LINK.findall(line):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        named = (file.parent / path).resolve() if path else file
        if not named.exists():
            yield f"the link to {target} leads nowhere"
        elif anchor and named.suffix == ".md" and anchor not in anchors(named):
            yield f"{path or file.name} has no heading for #{anchor}"


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return {name for names in re.findall(r"^([a-z][\w .-]*):(?!=)", text, re.MULTILINE) for name in names.split()}


def faults_of(file: Path, targets: set[str]) -> Iterator[str]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        place = f"{file.relative_to(ROOT)}:{number}"
        if ROOT / "docs" in file.parents and len(line) > LONGEST_LINE:
            yield f"{place}: {len(line)} characters; break the line at {LONGEST_LINE}"
        yield from (f"{place}: {fault}" for fault in dead_links(file, line))
        for named in MAKE.findall(line):
            if named not in targets:
                yield f"{place}: the Makefile has no target {named}"


def items(file: Path, pattern: str) -> set[str]:
    """Names that the head lines of a document's list hold."""
    heads = re.findall(r"^- (`.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {name for head in heads for name in re.findall(pattern, head)}


def compared(names: set[str], described: set[str], file: Path) -> Iterator[str]:
    """Names of the tree that a document's list lacks, and such in it that the tree does not have."""
    for name in sorted(names ^ described):
        fault = f"does not describe {name}" if name in names else f"describes {name}, which does not exist"
        yield f"{file.relative_to(ROOT)}: {fault}"


def faults() -> Iterator[str]:
    targets = make_targets()
    for file in documents():
        yield from faults_of(file, targets)
    guide, own = ROOT / "docs" / "scenarios.md", ROOT / "docs" / "writing-a-requirement.md"
    scenarios = {path.stem for path in (ROOT / "inventory" / "scenarios").glob("*.yml")}
    whole = {name for name in scenarios if not name.endswith(VARIANTS)}
    yield from compared(whole, items(guide, r"`([^`]+)`"), guide)
    schema = json.loads((ROOT / "inventory" / "schemas" / "scenario.schema.json").read_text(encoding="utf-8"))
    yield from compared(set(schema["properties"]["workloads"]["properties"]), items(own, r"`workloads\.(\w+)"), own)


def main() -> int:
    found = [*faults(), *english.faults(ROOT)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
