"""The packed agent on the oldest Python it is for."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agent_helpers import AGENTS, load, spooled, wait_for

from build_pyz import archive

PACKAGE, KIT = AGENTS / "daq_bench" / "telemetry_agent", AGENTS / "daq_bench" / "candidate_kit"
OLD_PYTHON_VARIABLE = "PYTHON39_BIN"
# Newer than 3.9, by module: what the agent must not call. `dataclass` has more keywords since 3.10, `zip` has `strict`.
TOO_NEW = {
    "itertools": {"pairwise", "batched"},
    "bisect": {"key"},
    "datetime": {"UTC"},
    "enum": {"StrEnum"},
    "typing": {
        "Self",
        "TypeAlias",
        "ParamSpec",
        "TypeGuard",
        "assert_never",
        "override",
        "LiteralString",
        "Never",
        "Required",
    },
    "types": {"NoneType", "UnionType", "EllipsisType"},
    "contextlib": {"aclosing", "chdir"},
    "collections.abc": {"Buffer"},
    "math": {"cbrt", "exp2"},
    "hashlib": {"file_digest"},
    "tomllib": set(),
}
TOO_NEW_KEYWORDS = {"dataclass": {"slots", "kw_only"}, "zip": {"strict"}}
TOO_NEW_METHODS = {"total", "bit_count", "add_note"}


def old_python() -> str | None:
    """A Python 3.9: by the variable, on PATH, or pyenv's."""
    candidates = [os.environ.get(OLD_PYTHON_VARIABLE, ""), "/usr/bin/python3.9", "/usr/local/bin/python3.9"]
    candidates += map(
        str, sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.9.*/bin/python"))
    )
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            done = subprocess.run([candidate, "-c", "import sys; print(sys.version_info[:2] == (3, 9))"],
                                  capture_output=True, text=True, check=False)  # fmt: skip
            if done.stdout.strip() == "True":
                return candidate
    return None


def trees() -> list[tuple[str, ast.Module]]:
    """Every module, read as Python 3.9 reads it."""
    return [
        (path.name, ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9)))
        for package in (PACKAGE, KIT)
        for path in package.rglob("*.py")
    ]


def offences(name: str, tree: ast.Module) -> list[str]:
    """Uses of what came after 3.9. Own methods of such names are not meant: only calls on what is imported or built in."""
    found = []
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    annotated = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Match if sys.version_info >= (3, 10) else ()):
            found.append(f"{name}:{node.lineno}: match")
        if isinstance(node, ast.ImportFrom) and node.module in TOO_NEW:
            names = {alias.name for alias in node.names} & TOO_NEW[node.module]
            found += [f"{name}:{node.lineno}: {node.module}.{one}" for one in names]
        if isinstance(node, (ast.Import, ast.ImportFrom)) and "tomllib" in ast.dump(node):
            found.append(f"{name}:{node.lineno}: tomllib")
        if isinstance(node, ast.Call):
            called = (
                node.func.id
                if isinstance(node.func, ast.Name)
                else node.func.attr
                if isinstance(node.func, ast.Attribute)
                else ""
            )
            keywords = {keyword.arg for keyword in node.keywords} & TOO_NEW_KEYWORDS.get(called, set())
            found += [f"{name}:{node.lineno}: {called}({keyword}=)" for keyword in keywords]
            if isinstance(node.func, ast.Attribute) and called in TOO_NEW_METHODS - own:
                found.append(f"{name}:{node.lineno}: .{called}()")
            if called in ("isinstance", "issubclass", "cast", "Union", "NewType"):
                unions = [one for argument in node.args for one in ast.walk(argument) if isinstance(one, ast.BinOp)]
                found += [f"{name}:{node.lineno}: X | Y at run time" for one in unions if isinstance(one.op, ast.BitOr)]
    for statement in tree.body:  # an alias is evaluated at once, whatever __future__ says of annotations
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.BinOp)
            and isinstance(statement.value.op, ast.BitOr)
        ):
            found.append(f"{name}:{statement.lineno}: alias with |")
    if not annotated and any(isinstance(node, ast.AnnAssign | ast.arg) for node in ast.walk(tree)):
        found.append(f"{name}: annotations without `from __future__ import annotations`")
    return found


def test_nothing_newer_than_python_3_9_is_used() -> None:
    """Syntax by the parser's own feature version, library by name."""
    assert [offence for name, tree in trees() for offence in offences(name, tree)] == []


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(x, int | str)",
        "from itertools import pairwise",
        "import tomllib",
        "zip(a, b, strict=True)",
        "Number = int | float",
        "counter.total()",
        "def f(x: int | None): pass",
        "@dataclass(slots=True)\nclass A: pass",
    ],
)
def test_the_check_finds_what_is_too_new(text: str) -> None:
    """The guard itself works."""
    assert offences("x.py", ast.parse(text)) != []


def test_the_archive_samples_delivers_and_accounts_on_python_3_9(tmp_path: Path) -> None:
    """A whole run of the one file; every module is loaded by it."""
    python = old_python()
    if python is None:
        pytest.skip(f"no Python 3.9 here (set {OLD_PYTHON_VARIABLE}); the sources are checked by the tests above")
    packed = tmp_path / "telemetry_agent.pyz"
    packed.write_bytes(archive(PACKAGE))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    spool = tmp_path / "spool"
    command = [python, str(packed), "run", f"--spool-dir={spool}", "--influx-url=http://127.0.0.1:9", "--database=d",
               "--period=0.1", "--drain-seconds=0.2", f"--workload-file={tmp_path / 'w.lp'}"]  # fmt: skip
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        wait_for(lambda: (spool / "points.lp").read_bytes().count(b"\n") > 150, "150 points")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, said
    summary = load(spool / "summary.json")
    assert summary["points"]["spooled"] == len(spooled(spool)) > 0
    assert {entry["status"] for entry in summary["collectors"]} <= {"ok", "unsupported"}
    done = subprocess.run([python, str(packed), "status", f"--spool-dir={spool}"], env=environment, capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert json.loads(done.stdout)["measurements"] == summary["measurements"]
