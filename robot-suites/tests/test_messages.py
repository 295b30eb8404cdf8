"""Every error message of the command line, read from the sources: one form, no slip of spelling, and no command that does not exist."""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli import PROGRAMS, parser

ROOT = Layout().repository
ROOMS = (
    "inventory/daq_bench/bench_model", "inventory/daq_bench/workloads", "robot-suites/daq_bench/rig",
    "robot-suites/daq_bench/virtual_candidate", "robot-suites/daq_bench/bench_rounds", "reports/daq_bench/bench_report",
    "reports/daq_bench/bench_dashboards",
)  # fmt: skip
GAP = "\N{WHITE SQUARE}"  # stands for what a message is filled with
# A message may begin with the name of a program, a standard, a keyword of Robot's or a field.
NAMES = re.compile(r"(InfluxDB|Grafana|RAID|HTTP|BMC|Redis|SQLite|Provision Candidate|[A-Z0-9_]{2,})\b")
TERMS = "daq"  # words of ours that codespell takes for slips


@dataclass(frozen=True)
class Message:
    """`problem` says what is wrong where; `remedy` is empty where both are one text."""

    place: str
    problem: str
    remedy: str = ""

    @property
    def whole(self) -> str:
        return f"{self.problem}. {self.remedy}" if self.remedy else self.problem


def text_of(node: ast.expr) -> str:
    """A text with gaps, of several alternatives the first."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.IfExp):
        return text_of(node.value)
    return text_of(node.body) if isinstance(node, ast.IfExp) else GAP


@dataclass
class Found:
    """Findings of one walk over the sources: classes with their bases, what is raised, and texts that name a command."""

    bases: dict[str, set[str]] = field(default_factory=dict)
    raised: list[tuple[str, ast.Call]] = field(default_factory=list)
    naming: list[Message] = field(default_factory=list)

    def look(self, file: Path, tree: ast.Module) -> None:
        rest: list[ast.AST] = [tree]
        while rest:
            node = rest.pop()
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring is for nobody at a terminal
            if isinstance(node, ast.ClassDef):
                self.bases[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                self.raised.append((f"{file}:{node.lineno}", node.exc))
            elif isinstance(node, ast.Constant | ast.JoinedStr):
                if "`" in (text := text_of(node)):
                    self.naming.append(Message(f"{file}:{node.lineno}", text))
                continue
            rest += ast.iter_child_nodes(node)

    def messages(self) -> Iterator[Message]:
        """Those of BenchError and all classes below it, and of argparse's."""
        told = {"BenchError"}
        while more := {name for name, its in self.bases.items() if its & told} - told:
            told |= more
        for place, call in self.raised:
            name, texts = ast.unparse(call.func).rpartition(".")[2], [text_of(one) for one in call.args]
            if name in ("error", "ProfileError", "BundleError") and len(texts) > 1:
                yield Message(place, *texts[1:3])
            elif name == "refused" and len(texts) == 4:
                yield Message(place, *texts[2:])
            elif name in {*told, "ArgumentTypeError"} and texts:
                yield Message(place, texts[0])


@cache
def found() -> Found:
    one = Found()
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            if re.search(r"raise |class \w*Error\(|`(?:make|daq-bench) ", text):  # parsing all of them takes seconds
                one.look(file.relative_to(ROOT), ast.parse(text))
    return one


@cache
def messages() -> tuple[Message, ...]:
    return tuple(found().messages())


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    return dict(next(action.choices for action in parser()._actions if action.dest == "command") or {})


@cache
def made() -> tuple[frozenset[str], frozenset[str]]:
    """Targets and variables of make."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE)
    return frozenset(targets), frozenset(re.findall(r"\b[A-Z][A-Z_]+\b", makefile))


def faults_of_form(one: Message) -> Iterator[str]:
    """What, where, remedy: the problem goes on from a place, so that it begins small; a remedy is a sentence; no full stop ends it."""
    if one.problem[:1].isupper() and not NAMES.match(one.problem):
        yield "begins with a capital"
    if one.remedy[:1].islower():
        yield "has a remedy that begins small"
    for text in filter(None, (one.problem, one.remedy)):
        if text != text.strip() or "  " in text:
            yield "has a space too many"
        if text.endswith((".", "!", ":", ";", ",")):
            yield f"ends with {text[-1]!r}"
    for start in re.findall(r"(?<!\.)(?<! e\.g)(?<! i\.e)[.?] ([a-z]+)", one.whole):
        yield f"has a sentence that begins small: {start}"


def faults_of_commands(one: Message) -> Iterator[str]:
    """A command that a remedy names can be typed."""
    for quoted in re.findall(r"`([^`]+)`", one.whole):
        words = quoted.split() or [""]
        if words[0] == "make":
            yield from faults_of_make(words[1:])
        elif words[0] == "daq-bench":
            yield from faults_of_ours(quoted)
        elif words[0] in commands() and (len(words) > 1 or "-" in words[0]):
            yield f"names `{quoted}` without daq-bench"
    for name in re.findall(r"(?<!`)\bdaq-bench ([a-z][a-z-]*)", re.sub(r"`[^`]*`", "", one.whole)):
        if name not in commands():
            yield f"names daq-bench {name}, which is no command"


def faults_of_make(words: list[str]) -> Iterator[str]:
    targets, variables = made()
    for word in words:
        name, is_variable, _ = word.partition("=")
        if name != GAP and name not in (variables if is_variable else targets):
            yield f"names make's {word}, which there is not"


def faults_of_ours(text: str) -> Iterator[str]:
    words = text.split()[1:]
    if not words or words[0] in (GAP, "..."):
        return
    if words[0] not in commands():
        yield f"names daq-bench {words[0]}, which is no command"
        return
    known = commands()[words[0]]._option_string_actions
    for word in words[1:]:
        if word.startswith("--") and words[0] not in PROGRAMS and word.partition("=")[0] not in known:
            yield f"names {word} of daq-bench {words[0]}, which has no such option"


def test_the_catalogue_holds_every_message() -> None:
    texts = {one.whole for one in messages()}
    assert len(messages()) > 450, "no longer finds them"
    for text in (
        f"{GAP} is no run bundle ({GAP}). Name one: {GAP}",  # a BenchError
        "is empty. Add a candidate (docs/own-hardware.md), or name another file",  # of a file's place
        f"{GAP} is no finite number",  # argparse's
        f"it holds no finished run that counts. Name a folder of runs, or bundles: {GAP}",  # a report's
    ):
        assert text in texts


def test_every_message_has_the_one_form() -> None:
    assert [f"{one.place}: {fault}: {one.whole}" for one in messages() for fault in faults_of_form(one)] == []


def test_every_command_that_a_message_names_exists() -> None:
    """Also one that is no error, such as what doctor says."""
    every = {*messages(), *found().naming}
    assert len(found().naming) > 60, "no longer finds them"
    assert sorted({f"{one.place}: {fault}: {one.whole}" for one in every for fault in faults_of_commands(one)}) == []


def misspelt(lines: list[str]) -> list[str]:
    words = [sys.executable, "-m", "codespell_lib", "--ignore-words-list", TERMS, "-"]
    done = subprocess.run(words, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode in (0, 65), done.stderr
    return [line for line in done.stdout.splitlines() if "==>" in line]


def test_no_message_is_misspelt() -> None:
    assert misspelt([f"{one.place}: {one.whole}" for one in messages()]) == []
    assert len(misspelt(["it dose not occure"])) == 1, "codespell finds nothing any more"


@pytest.mark.parametrize(
    ("problem", "remedy", "fault"),
    [
        ("The file is empty", "", "begins with a capital"),
        ("is empty", "write it", "has a remedy that begins small"),
        ("is empty.", "", "ends with '.'"),
        ("is empty ", "", "has a space too many"),
        ("is empty. correct it", "", "has a sentence that begins small: correct"),
        ("is empty", "`make vlidate` finds it", "names make's vlidate, which there is not"),
        ("is empty", "`make validate CANIDATE=x` finds it", "names make's CANIDATE=x, which there is not"),
        ("is empty", "`daq-bench vlidate` finds it", "names daq-bench vlidate, which is no command"),
        ("is empty", "run daq-bench vlidate", "names daq-bench vlidate, which is no command"),
        ("is empty", "`daq-bench plan --scal 1` tells", "names --scal of daq-bench plan, which has no such option"),
        ("is empty", "`plan --scale 1` tells", "names `plan --scale 1` without daq-bench"),
    ],
)
def test_the_rules_find_what_breaks_them(problem: str, remedy: str, fault: str) -> None:
    one = Message("x", problem, remedy)
    assert fault in [*faults_of_form(one), *faults_of_commands(one)]


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [
        ("InfluxDB is not there", "`make setup PYTHON_GROUP=fleet` installs it"),
        (f"{GAP} is ... s off", f"`daq-bench restore --candidate {GAP}` puts it back"),
        ("it is 3.5 s off, e.g. now", "Did you mean `scale`?"),
    ],
)
def test_the_rules_let_pass_what_keeps_them(problem: str, remedy: str) -> None:
    one = Message("x", problem, remedy)
    assert [*faults_of_form(one), *faults_of_commands(one)] == []


def test_messages_are_found_in_every_way_of_raising_one() -> None:
    source = """
class Own(BenchError): pass
class Below(Own): pass
def f(source, a, word):
    raise BenchError(f"a {word} b" + " c")
    raise Below("x" if a else "y")
    raise source.error(("at",), "problem", "Remedy")
    raise ValueError("for nobody")
    raise refused(0, "field", f"p{' q' if a else ''}", "R")
"""
    seen = Found()
    seen.look(Path("x.py"), ast.parse(source))
    assert {one.whole for one in seen.messages()} == {f"a {GAP} b c", "x", "problem. Remedy", "p q. R"}
