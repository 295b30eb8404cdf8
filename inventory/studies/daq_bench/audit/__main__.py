"""`make audit`: wrong evidence of every scenario against the functions that judge; how much passes?

`python -m daq_bench.audit [--most N] [--scenarios a,b] [--seed N] [--write docs/statistics.md]`. `--most`: mutants of each class and
scenario. The exit status is 1 when one wrong piece of evidence passes, and when a mutant makes the judge fall over: a verdict is an
outcome, never a traceback."""

from __future__ import annotations

import functools
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from daq_bench.audit import mutants
from daq_bench.audit.good import MAKERS as EVIDENCE
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import INVENTORY, Case, case_of, evidence_of
from daq_bench.audit.mutants import Mutant

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.marked_page import renew
from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, read
from daq_bench.bench_model.documents.verdict import PASS
from daq_bench.bench_model.evidence import soundness
from daq_bench.bench_model.evidence.derived import MAKERS
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.statistics.bootstrap import SeriesInterval, mean_interval
from daq_bench.bench_model.verdict import decision
from daq_bench.bench_model.verdict.verdict import bounds, judge

BEGIN, END = "<!-- audit: begin -->", "<!-- audit: end -->"
SEED = 20211
MOST_SHOWN = 20
LINE = 140  # characters of a line in docs/


@dataclass
class Findings:
    """The findings of one scenario. `wrong`: places that were spoilt and still pass. `broken`: mutants that the judge fell over."""

    scenario: str
    outcome: str  # for the good evidence
    tried: Counter[str] = field(default_factory=Counter)
    rightly: int = 0  # a verdict rests on nothing there
    derived: int = 0  # the document follows from others, and `check-bundle` makes it again
    sizes: int = 0  # a number of another size that no other document contradicts
    wrong: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


@functools.cache
def scenarios() -> tuple[str, ...]:
    """Every scenario of the inventory whose workloads have good evidence here; its workload's own test brings that of another one."""
    files = sorted((INVENTORY / "scenarios").glob("*.yml"))
    return tuple(file.stem for file in files if load_scenario(file).workloads.keys() <= EVIDENCE.keys())


def mutants_of(case: Case, evidence: Evidence) -> list[Mutant]:
    """Every class of wrong evidence, from one good run."""
    return [
        *mutants.of_values(evidence),
        *mutants.of_words(evidence),
        *mutants.of_allowed_words(evidence),
        *mutants.of_metrics(
            evidence, case.profile, case.metrics, lambda one: bounds(one, read(evidence.run, Run, "run.json"))[0]
        ),
    ]


def audit(scenario: str, most: int, seed: int = SEED) -> Findings:
    """Judges at most `most` mutants of each class of one scenario; `seed` chooses which."""
    case = case_of(scenario)
    good = evidence_of(case, results_of(case))
    found = Findings(scenario, judge(good, case.profile, case.metrics).outcome)
    with _remembered(good):
        for mutant in mutants.sample(mutants_of(case, good), most, seed):
            found.tried[mutant.kind] += 1
            where = f"{mutant.kind}: {mutant.file}: {mutant.place}"
            try:
                outcome = judge(mutants.applied(good, mutant), case.profile, case.metrics).outcome
            except Exception as error:  # of any kind: a judge that falls over is a finding
                found.broken.append(f"{where} ({type(error).__name__}: {error})")
                continue
            if outcome == PASS:
                if not mutants.rests_on(mutant) or mutants.advisory_only(mutant, case.profile, case.metrics):
                    found.rightly += 1
                elif mutant.file in MAKERS:
                    found.derived += 1
                elif mutant.kind in mutants.OTHER_SIZES:
                    found.sizes += 1
                else:
                    found.wrong.append(where)
    return found


@contextmanager
def _remembered(good: Evidence) -> Iterator[None]:
    """Keeps the results of the other documents, and of series, since a mutant differs in one document only."""
    kept = {id(document): document for _, document in good.documents()}
    check, interval = soundness.fault_of, mean_interval
    known = functools.cache(lambda file, identity: check(file, kept[identity]))
    of_series = functools.cache(interval)

    def fault_of(file: str, document: Document) -> str:
        return known(file, id(document)) if id(document) in kept else check(file, document)

    def of_series_once(series: Sequence[float], confidence: float, seed: int) -> SeriesInterval:
        return of_series(tuple(series), confidence, seed)

    with patch.object(soundness, "fault_of", fault_of), patch.object(decision, "mean_interval", of_series_once):
        yield


def table(found: Sequence[Findings], seconds: float) -> Iterator[str]:
    """The lines for docs/statistics.md."""
    tried: Counter[str] = sum((one.tried for one in found), Counter())
    wrong, broken = (
        Counter(text.partition(":")[0] for one in found for text in getattr(one, key)) for key in ("wrong", "broken")
    )
    could = [one.scenario for one in found if one.outcome == PASS]
    yield textwrap.fill(
        f"{sum(tried.values())} mutants of {len(found)} scenarios, of which {len(could)} pass when their evidence is good; the others are "
        f"rehearsals, or their profile has nothing mandatory, and never pass. Wrong PASS: **{sum(wrong.values())}**; the judge fell over: "
        f"**{sum(broken.values())}**. {sum(one.rightly for one in found)} changes passed rightly, where no verdict rests on anything; "
        f"{sum(one.derived for one in found)} passed the judge alone in documents that follow from telemetry and results, which "
        f"`daq-bench check-bundle` makes again and compares, as it does {sum(one.sizes for one in found)} numbers of another size that "
        "nothing else in the evidence tells.",
        LINE,
        break_on_hyphens=False,
    )
    yield ""
    yield "| class of mutants | tried | wrong PASS | fell over |"
    yield "|---|---|---|---|"
    for kind, count in sorted(tried.items()):
        yield f"| {kind} | {count} | {wrong[kind]} | {broken[kind]} |"
    yield ""
    yield textwrap.fill(
        f"Scenarios that pass when their evidence is good: {', '.join(could) or 'none'}.", LINE, break_on_hyphens=False
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="audit", description="wrong evidence of every scenario against the functions that judge")
    parser.add_argument("--most", type=int, default=60, help="mutants of each class and scenario (default 60)")
    parser.add_argument("--scenarios", help="names, separated by commas (default: all of the inventory)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"chooses the mutants (default {SEED})")
    parser.add_argument("--write", type=Path, help="document whose part between the audit's markers is renewed")
    options = parser.parse_args(arguments)
    began, found = time.monotonic(), []
    names = options.scenarios.split(",") if options.scenarios else scenarios()
    for number, name in enumerate(names, start=1):
        one = audit(name, options.most, options.seed)
        found.append(one)
        bad = f"{len(one.wrong)} wrong PASS, {len(one.broken)} fell over"
        print(
            f"{number}/{len(names)} {name}: good evidence is {one.outcome}; {sum(one.tried.values())} mutants, {bad}",
            flush=True,
        )
        for text in [*one.wrong, *one.broken][:MOST_SHOWN]:
            print(f"    {text}", flush=True)
    lines = list(table(found, time.monotonic() - began))
    print("\n".join(lines))
    if options.write:
        renew(options.write, BEGIN, END, "\n".join(lines))
    return 1 if any(one.wrong or one.broken for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
