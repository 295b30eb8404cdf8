"""Packs a program of `on_candidate` and the modules of ours that it imports into one text that `python3 -c` runs on the candidate.

The text makes each module in memory under its own name before the program begins, so that the same import works here and there. Besides
`on_candidate` a program may take `candidate_kit` along, and Ansible's module utilities of ours (`bench_*`): the guard of drives is written
once."""

from __future__ import annotations

import ast
import base64
import json
import zlib
from pathlib import Path

import daq_bench.candidate_kit
from daq_bench.rig.base.settings import Layout

ON_CANDIDATE = Path(__file__).resolve().parent.parent / "on_candidate"
PACKAGE = "daq_bench.rig.on_candidate"
KIT = daq_bench.candidate_kit.__name__
UTILITIES = "ansible.module_utils"
PACKAGES = (PACKAGE, KIT)
OURS = (f"{PACKAGE}.", f"{KIT}.", f"{UTILITIES}.bench_")
# Compressed: a command line takes 128 KiB as one argument, and the SSH link quotes it once more.
LOADER = """\
import base64, json, sys, types, zlib
for name, text in json.loads(zlib.decompress(base64.b64decode({modules!r}))):
    module = sys.modules[name] = types.ModuleType(name)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
exec(compile({program!r}, {name!r}, "exec", dont_inherit=True))
"""


def source_of(name: str) -> str:
    """Returns the text of a program; if it imports nothing of ours, that is its file as it is."""
    program, needed = _program(name), dict[str, str]()
    _collect(program, needed)
    if not needed:
        return program
    packages = {parent: "" for module in needed for parent in _parents(module) if parent not in needed}
    modules = json.dumps([*packages.items(), *needed.items()]).encode()
    return LOADER.format(modules=base64.b64encode(zlib.compress(modules, 9)).decode(), program=program, name=name)


def _program(name: str) -> str:
    """A program is called by its own name, whichever room its file lies in: journals of the past name it so."""
    (file,) = ON_CANDIDATE.rglob(f"{name.replace('.', '/')}.py")
    return file.read_text(encoding="utf-8")


def _place(module: str) -> Path:
    """The module's file without `.py`, or the package's folder."""
    room, folder = (PACKAGE, ON_CANDIDATE)
    if module.startswith(UTILITIES):
        room, folder = (UTILITIES, Layout().module_utils)
    elif module.startswith(KIT):
        room, folder = (KIT, Path(daq_bench.candidate_kit.__path__[0]))
    return folder.joinpath(*module.removeprefix(room).split(".")[1:])


def _text(module: str) -> str:
    return _place(module).with_suffix(".py").read_text(encoding="utf-8")


def _parents(module: str) -> list[str]:
    """The packages that a module lies in, the outermost first."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _collect(text: str, needed: dict[str, str]) -> None:
    """Adds the modules that `text` imports, each behind those that it needs itself."""
    for module in _imported(text):
        if module not in needed:
            source = _text(module)
            _collect(source, needed)
            needed[module] = source


def _imported(text: str) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        if (module in PACKAGES or module.startswith(OURS)) and isinstance(node, ast.ImportFrom):
            package = _place(module).is_dir()
            found += [f"{module}.{alias.name}" for alias in node.names] if package else [module]
    return found
