#!/usr/bin/env python3
"""`make mutants`: changes the rooms that decide in one place at a time, and looks whether a test notices.

Cosmic Ray makes the mutants. Each runs in a process of its own, forked from one that has the libraries loaded: the changed module never
stands on disk, so that nothing beside it sees it. The nearest test files run first, and the first failure ends it; what lives meets the
rest of the files that import the module, by itself or by others. The tests of .ci/slow.txt are left out.

Rows stand in build/mutants/rows.jsonl: an interrupted run goes on from them, and what was changed since, source or test, runs again. The
exit status is 1 where fewer than 95 % are killed."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.machinery
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from check import python_sources, tests_of
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

from daq_bench.bench_model.base.rows import add_rows, rows_in

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "mutants"
MODEL = "inventory/daq_bench/bench_model"
ROOMS = ("verdict", "evidence", "statistics", "nights", "lot", "tender", "behaviour")
# Operators whose mutants differ from each other: `<` to `>` says no more than `not`, and an annotation's `|` decides nothing.
OPERATORS = (
    "core/AddNot", "core/ReplaceUnaryOperator_Delete_Not", "core/ReplaceAndWithOr", "core/ReplaceOrWithAnd",
    "core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue", "core/NumberReplacer", "core/ZeroIterationForLoop",
    "core/ReplaceBreakWithContinue", "core/ReplaceContinueWithBreak", "core/ReplaceUnaryOperator_USub_UAdd",
    "core/ReplaceComparisonOperator_Lt_LtE", "core/ReplaceComparisonOperator_LtE_Lt",
    "core/ReplaceComparisonOperator_Gt_GtE", "core/ReplaceComparisonOperator_GtE_Gt",
    "core/ReplaceComparisonOperator_Eq_NotEq", "core/ReplaceComparisonOperator_NotEq_Eq",
    "core/ReplaceBinaryOperator_Add_Sub", "core/ReplaceBinaryOperator_Sub_Add",
    "core/ReplaceBinaryOperator_Mul_Div", "core/ReplaceBinaryOperator_Div_Mul",
)  # fmt: skip
SWAPPED = {"any": "all", "all": "any", "min": "max", "max": "min"}
NEAREST = 3  # test files of the first round; the rest run for what lives through it
CPU_S_MAX = 150  # of a round; a mutant that uses more hangs, which counts as killed: the tests of all modules take less together
QUICK = "not slow and not integration and not virtual and not campaign and not influx2 and not grafana and not systems"
LIVED, KILLED, HANGS = "lived", "killed", "hangs"
LOADED = (
    "numpy",
    "scipy.stats",
    "msgspec",
    "jsonschema",
    "jsonschema_rs",
    "jmespath",
    "ruamel.yaml",
    "hypothesis",
    "pytest",
)
SHARE_MIN = 0.95
NO_TESTS, INTERNAL_ERROR = 5, 3  # exit statuses of pytest


class SwappedCall(Operator):  # type: ignore[misc]
    """`any(...)` becomes `all(...)`, `min(...)` becomes `max(...)`, and the other way round."""

    def mutation_positions(self, node: object) -> Iterator[tuple[object, object]]:
        if getattr(node, "type", "") == "name" and getattr(node, "value", "") in SWAPPED:
            after = node.get_next_leaf()  # type: ignore[attr-defined]
            before = node.get_previous_leaf()  # type: ignore[attr-defined]
            if after is not None and after.value == "(" and (before is None or before.value not in (".", "def")):
                yield node.start_pos, node.end_pos  # type: ignore[attr-defined]

    def mutate(self, node: object, index: int) -> object:
        node.value = SWAPPED[node.value]  # type: ignore[attr-defined]
        return node

    @classmethod
    def examples(cls) -> Sequence[object]:
        return ()


@dataclass(frozen=True)
class Mutant:
    file: str  # from the root of the checkout
    operator: str
    occurrence: int
    line: int


def operator(name: str) -> Any:
    return SwappedCall() if name == "SwappedCall" else get_operator(name)()


def mutants(file: str) -> Iterator[Mutant]:
    """All of a file, in the order of its lines for each operator."""
    nodes = list(ast_nodes(get_ast((ROOT / file).read_text(encoding="utf-8"))))
    for name in (*OPERATORS, "SwappedCall"):
        changes = operator(name)
        # Keywords of the grammar, such as `in` of a loop, are not operators.
        positions = [at for node in nodes for at in changes.mutation_positions(node)]
        for occurrence, (begin, _) in enumerate(positions):
            yield Mutant(file, name, occurrence, begin[0])


def tests_beside(file: str, sources: dict[str, str]) -> list[str]:
    """Test files that import the module by itself or by others, the nearest first: its namesake before all."""
    found = [one for one in tests_of([file], sources) if one.startswith("inventory/tests/")]
    stem = Path(file).stem
    return sorted(found, key=lambda one: stem not in one)  # stable: the order of nearness stays


def state(files: Sequence[str]) -> str:
    """Returns what a row depends on: the module and its tests, by content."""
    digest = hashlib.sha256()
    for file in files:
        digest.update((ROOT / file).read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Round:
    """One run of some tests on a mutant."""

    mutant: Mutant
    tests: tuple[str, ...]


def run_tests(one: Round, log: Path) -> None:
    """In a child: pytest with the changed module. Ends with pytest's own exit status."""
    import pytest

    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX + 5))
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    load_changed(one.mutant)
    base = log.with_suffix(".tmp")
    options = [
        "-x",
        "-q",
        "--no-header",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"--basetemp={base}",
        "-m",
        QUICK,
    ]
    status = int(pytest.main([*options, *one.tests]))
    sys.stdout.flush()
    os._exit(0 if status == NO_TESTS else status)


def load_changed(mutant: Mutant) -> None:
    """From now on, importing the mutant's module gives the changed one."""
    path = str(ROOT / mutant.file)
    changed = mutate_code(Path(path).read_text(encoding="utf-8"), operator(mutant.operator), mutant.occurrence)
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        return compile(changed, path, "exec") if loader.get_filename(name) == path else plain(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]


class Children:
    """Rounds that run beside each other, each in a process of its own and its group."""

    def __init__(self, places: int, folder: Path):
        self._free, self._folder = list(range(places)), folder
        self._running: dict[int, tuple[Round, Path]] = {}

    def __len__(self) -> int:
        return len(self._running)

    @property
    def full(self) -> bool:
        return not self._free

    def begin(self, one: Round) -> None:
        log = self._folder / f"log-{os.getpid()}-{self._free.pop()}"
        pid = os.fork()
        if pid:
            self._running[pid] = one, log
            return
        try:
            run_tests(one, log)
        finally:
            os._exit(INTERNAL_ERROR)

    def next(self) -> tuple[Round, str]:
        """Waits for the next that ends."""
        while True:
            pid, status = os.wait()
            if pid in self._running:
                one, log = self._running.pop(pid)
                self._free.append(int(log.name.rpartition("-")[2]))
                end_group(pid)
                shutil.rmtree(log.with_suffix(".tmp"), ignore_errors=True)
                return one, outcome_of(status)

    def end(self) -> None:
        for pid in self._running:
            end_group(pid)


def end_group(pid: int) -> None:
    """The processes that a test has started and not ended go with it."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def outcome_of(status: int) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return HANGS
    return LIVED if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else KILLED


def campaign(work: Sequence[tuple[Mutant, list[str], str]], jobs: int, folder: Path) -> Iterator[dict[str, object]]:
    """A row of each mutant, as it ends."""
    children, known = Children(jobs, folder), {mutant: (tests, at) for mutant, tests, at in work}
    waiting = [Round(mutant, tuple(tests[:NEAREST])) for mutant, tests, _ in reversed(work)]
    try:
        while waiting or len(children):
            while waiting and not children.full:
                children.begin(waiting.pop())
            one, outcome = children.next()
            tests, at = known[one.mutant]
            rest = tuple(tests[NEAREST:])
            if outcome == LIVED and rest and one.tests != rest:
                waiting.append(Round(one.mutant, rest))
            else:
                yield {**asdict(one.mutant), "outcome": outcome, "state": at}
    finally:
        children.end()


def chosen(rooms: Sequence[str]) -> list[str]:
    files = [
        path for room in rooms for path in sorted((ROOT / MODEL / room).glob("*.py")) if path.name != "__init__.py"
    ]
    return [path.relative_to(ROOT).as_posix() for path in files]


def rows_before(file: Path) -> dict[Mutant, dict[str, object]]:
    return {Mutant(row["file"], row["operator"], row["occurrence"], row["line"]): row for row in rows_in(file)}


def table(rows: Sequence[dict[str, object]]) -> str:
    lines = ["| room | mutants | killed | hang | lived | killed or hang |", "|---|---|---|---|---|---|"]
    for room in (*ROOMS, "all"):
        of_room = [row for row in rows if room == "all" or str(row["file"]).startswith(f"{MODEL}/{room}/")]
        counts = [sum(row["outcome"] == outcome for row in of_room) for outcome in (KILLED, HANGS, LIVED)]
        if of_room:
            lines.append(
                f"| {room} | {len(of_room)} | {counts[0]} | {counts[1]} | {counts[2]} | {share(of_room):.1%} |"
            )
    return "\n".join(lines)


def share(rows: Sequence[dict[str, object]]) -> float:
    return sum(row["outcome"] != LIVED for row in rows) / len(rows)


def words(row: dict[str, object]) -> str:
    source = (ROOT / str(row["file"])).read_text(encoding="utf-8")
    line = source.splitlines()[int(str(row["line"])) - 1].strip()
    name = str(row["operator"]).removeprefix("core/")
    return f"{str(row['file']).removeprefix(MODEL + '/')}:{row['line']} {name}: `{line}`"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--rooms", type=str.split, default=list(ROOMS), help="names, with spaces between them")
    parser.add_argument("--files", type=str.split, help="only these, as `verdict/decision.py`")
    parser.add_argument("--sample", type=int, help="mutants, drawn by --seed; writes no page")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants beside each other")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the rows")
    options = parser.parse_args()
    if wrong := [name for name in options.rooms if name not in ROOMS]:
        parser.error(f"no such room: {' '.join(wrong)}; there are {' '.join(ROOMS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    sources = python_sources()
    work = list[tuple[Mutant, list[str], str]]()
    files = [f"{MODEL}/{name}" for name in options.files] if options.files else chosen(options.rooms)
    for file in files:
        tests = tests_beside(file, sources)
        at = state([file, *tests])
        work += [(mutant, tests, at) for mutant in mutants(file)]
    if options.sample is not None:
        work = random.Random(options.seed).sample(work, min(options.sample, len(work)))
    rows_file = options.folder / "rows.jsonl"
    before = rows_before(rows_file)
    rows = [before[mutant] for mutant, _, at in work if mutant in before and before[mutant]["state"] == at]
    done = {
        Mutant(str(row["file"]), str(row["operator"]), int(str(row["occurrence"])), int(str(row["line"])))
        for row in rows
    }
    left = [one for one in work if one[0] not in done]
    print(f"mutants: {len(work)}, {len(rows)} of them known, {len(left)} to run", flush=True)
    for name in LOADED:
        importlib.import_module(name)
    began_s = time.monotonic()
    for number, row in enumerate(campaign(left, options.jobs, options.folder), 1):
        add_rows(rows_file, [row])
        rows.append(row)
        if row["outcome"] == LIVED:
            print(f"lived: {words(row)}", flush=True)
        if number % 50 == 0:
            took_s = time.monotonic() - began_s
            print(
                f"{number} of {len(left)}, {took_s:.0f} s, {took_s / number * (len(left) - number):.0f} s to go",
                flush=True,
            )
    print(table(rows))
    for row in rows:
        if row["outcome"] == LIVED:
            print(words(row))
    return 0 if share(rows) >= SHARE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
