"""Packs a program of `on_candidate` and its imports from there into one text that `python3 -c` runs on the candidate.

The text makes each module in memory under its own name before the program begins, so that the same import works here and there."""

from __future__ import annotations

import ast
from pathlib import Path

ON_CANDIDATE = Path(__file__).resolve().parent.parent / "on_candidate"
PACKAGE = "rig.on_candidate"
LOADER = """\
import sys, types
for name, text in {modules!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
exec(compile({program!r}, {name!r}, "exec", dont_inherit=True))
"""


def source_of(name: str) -> str:
    """Returns the text of a program; if it imports nothing of ours, that is its file as it is."""
    program, needed = _read(name), dict[str, str]()
    _collect(program, needed)
    if not needed:
        return program
    modules = {PACKAGE.partition(".")[0]: "", PACKAGE: "", **needed}
    return LOADER.format(modules=modules, program=program, name=name)


def _read(name: str) -> str:
    return (ON_CANDIDATE / f"{name}.py").read_text(encoding="utf-8")


def _collect(text: str, needed: dict[str, str]) -> None:
    """Adds the modules that `text` imports, each behind those that it needs itself."""
    for own in _imported(text):
        if f"{PACKAGE}.{own}" not in needed:
            source = _read(own)
            _collect(source, needed)
            needed[f"{PACKAGE}.{own}"] = source


def _imported(text: str) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE}."):
            found.append(node.module.removeprefix(f"{PACKAGE}."))
    return found
