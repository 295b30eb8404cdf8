"""`bench_report site`: a static site over run bundles and nights: an index with filters, a page for each candidate, links to all documents.

Promise: files alone, without a server or a network, and their script is one that their policy names. A run stands there with what this
bench judges of its evidence now; one that others may not rest on stands apart with the reason, never as passed."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from daq_bench.bench_model.base.calling import by_make, typed
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.files import find_struct, plain_file
from daq_bench.bench_model.documents.admission import Admission
from daq_bench.bench_model.documents.nights import NightDocument
from daq_bench.bench_model.documents.verdict import INADMISSIBLE, Judgement
from daq_bench.bench_model.nights.bundle_facts import DRIVES, FIRMWARE
from daq_bench.bench_model.nights.night import LeftOut, Night, read_run
from daq_bench.bench_model.nights.outcome import first_read, heading, outcome_of, read_as, said, shown, worse
from daq_bench.bench_model.nights.run_history import read_all
from daq_bench.bench_model.verdict.advice import advice_of
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.base.marks import breakable, visible
from daq_bench.bench_report.base.units import NONE, grouped_in, significant
from daq_bench.bench_report.document.beside import lines_of
from daq_bench.bench_report.document.outcome import GLYPHS, css_name
from daq_bench.bench_report.nightly import NAME as NIGHT_PAGE
from daq_bench.bench_report.nightly import SHOWN, SOURCE
from daq_bench.bench_report.output.typeset import TEMPLATES
from daq_bench.bench_report.reading.door import Trust, admitted

MARK = "daq-storage-bench-site"  # a file of every site that this module made: only such a folder is replaced
DOCUMENTS = {"report.html": "report", "report.pdf": "PDF", "verdict.json": "verdict", "robot/log.html": "log"}
SPARK_POINTS_MIN = 2
SPARK_WIDTH, SPARK_HEIGHT, SPARK_EDGE = 240.0, 48.0, 4.0
ADDRESS_MAX = 80  # characters of a page's file name


@dataclass(frozen=True)
class RunLine:
    """One run of the index. `links`: (words, address). `why`: what was not in order; `advice`: likely cause and next step of a run that
    did not pass. `marks`: the door's words beside the outcome."""

    id: str
    candidate: str
    page: str
    scenario: str
    target: str
    scale: str
    started: str
    word: str
    why: str
    links: tuple[tuple[str, str], ...]
    marks: str
    advice: tuple[str, ...] = ()

    @property
    def day(self) -> str:
        return self.started[:10]


@dataclass(frozen=True)
class Spark:
    """One requirement over a candidate's runs of one task: an SVG's points, and the values that stand beside it."""

    requirement: str
    text: str
    points: str
    bound_y: float | None
    newest: str
    bound: str
    runs: int


@dataclass(frozen=True)
class CandidatePage:
    name: str
    page: str
    runs: tuple[RunLine, ...]
    drives: tuple[tuple[str, str, str], ...]  # serial, what is known of it, first and last seen
    sparks: tuple[tuple[str, tuple[Spark, ...]], ...]


@dataclass(frozen=True)
class NightLine:
    id: str
    word: str
    headline: str
    address: str


def build(
    runs: Sequence[Path], nights: Path, out: Path, copy: bool = False, trust: Trust | None = None
) -> tuple[list[str], int, list[LeftOut]]:
    """Writes the site into `out`, in place of an earlier one; returns its pages, how many runs it shows, and what is left out. `copy`: with
    the documents themselves, so that the folder can be moved. Raises BenchError for a folder `out` that is no earlier site, or that holds
    the bundles."""
    _require_ours(out, [*runs, nights])
    if not any(folder.is_dir() for folder in (*runs, nights)):
        named = ", ".join(map(str, (*runs, nights)))
        both = f"{'RUNS=runs' if by_make() else 'runs'} {typed('--nights', 'nightly')}"
        raise BundleError(
            named, "no folder is there", f"`daq-bench qualify` makes a run. Or name other folders: {both}"
        )
    if nights.exists() and not nights.is_dir():
        raise BundleError(str(nights), "is no folder", f"Name the folder of nights with {typed('--nights')}")
    only_nights = not any(folder.exists() for folder in runs)
    found, left_out, known = admitted(*read_all([] if only_nights else runs), trust or Trust())
    for line in lines_of((night.id, ", ".join(known[night.path].short)) for night in found):
        print(line, file=sys.stderr)
    found.sort(key=lambda night: (night.started, night.id), reverse=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as temporary:
        made = Path(temporary) / "site"
        made.mkdir()
        place = _Place(made, out, copy)
        pages = _pages(sorted({night.candidate for night in found}))
        lines = [_line(night, known[night.path], pages[night.candidate], place) for night in found]
        candidates = [_candidate(name, page, found, lines) for name, page in pages.items()]
        common = {
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "glyphs": {**GLYPHS, **_glyphs()},
            "css_name": css_name,
        }
        index: dict[str, Any] = {
            "title": "Runs", "runs": lines, "candidates": candidates, "left_out": left_out, "nights": list(_nights(nights, found, place)),
            "scenarios": sorted({one.scenario for one in lines}), "words": sorted({one.word for one in lines}),
        }  # fmt: skip
        _write(made / "index.html", {**common, **index, "candidate": None})
        for one in candidates:
            _write(made / one.page, {**common, "title": one.name, "candidate": one, "runs": one.runs})
        (made / MARK).touch()
        _swap(made, out)
    return ["index.html", *pages.values()], len(found), left_out


def _require_ours(out: Path, sources: Sequence[Path]) -> None:
    # realpath, since a link that leads back to itself makes resolve() raise.
    to, froms = Path(os.path.realpath(out)), [Path(os.path.realpath(one)) for one in sources]
    if any(one.is_relative_to(to) for one in froms):
        raise BundleError(str(out), "holds the runs themselves", f"Name another folder with {typed('--output')}")
    if any(to.is_relative_to(one) for one in froms):
        raise BundleError(str(out), "lies among the runs", f"Name another folder with {typed('--output')}")
    if out.is_symlink() or (out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MARK).is_file()))):
        raise BundleError(
            str(out),
            "is there already, and no site that this command made",
            f"Name another folder with {typed('--output')}",
        )


def _swap(made: Path, out: Path) -> None:
    """The old site stands until the new one is whole."""
    old = made.with_name("old")
    if out.exists():
        out.replace(old)
    try:
        made.replace(out)
    except OSError:
        if old.exists():
            old.replace(out)
        raise


def _pages(candidates: Sequence[str]) -> dict[str, str]:
    """A file name for each candidate, that says who it is and harms no file system; two never share one."""
    return {
        name: f"candidate-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:ADDRESS_MAX]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.html"
        for name in candidates
    }


def _glyphs() -> dict[str, str]:
    return {shown(word): GLYPHS[like] for word, like in SHOWN.items()}


@dataclass(frozen=True)
class _Place:
    """Describes where documents are: beside the site, by a relative address, or copied into it."""

    made: Path
    out: Path
    copy: bool

    def address(self, file: Path) -> str:
        if not self.copy:
            return quote(Path(os.path.relpath(file.resolve(), self.out.resolve())).as_posix())
        copied = self.made / "documents" / file.parent.name / file.name
        if file.parent.name == "robot":
            copied = self.made / "documents" / file.parent.parent.name / "robot" / file.name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied, follow_symlinks=False)
        return quote(copied.relative_to(self.made).as_posix())


def _line(night: Night, door: Admission, page: str, place: _Place) -> RunLine:
    word = outcome_of(night)
    why = [] if word == "PASS" else [grouped_in(conclude(night.verdict).reason)]
    advice = () if word == "PASS" else advice_of(night.path, read_run(night.path), night.verdict).lines
    links = tuple(
        (words, place.address(night.path / name)) for name, words in DOCUMENTS.items() if _is_there(night.path, name)
    )
    return RunLine(
        id=night.id, candidate=night.candidate, page=page, scenario=night.scenario, target=night.target,
        scale=in_digits(night.scale, 6), started=f"{night.started.astimezone(UTC):%Y-%m-%d %H:%M}", word=read_as(word, night),
        why="; ".join([*why, *(one for one in door.marks if one not in door.short)]), links=links,  # a short one stands by the outcome
        marks=", ".join(door.short), advice=advice,
    )  # fmt: skip


def _is_there(bundle: Path, name: str) -> bool:
    """A plain file of the bundle; a link would lead, or be copied, out of it."""
    try:
        return plain_file(bundle, name) is not None
    except BenchError:
        return False


def _candidate(name: str, page: str, nights: Sequence[Night], lines: Sequence[RunLine]) -> CandidatePage:
    own = [night for night in nights if night.candidate == name]
    return CandidatePage(
        name, page, tuple(line for line in lines if line.candidate == name), tuple(_drives(own)), tuple(_sparks(own))
    )


def _drives(nights: Sequence[Night]) -> Iterator[tuple[str, str, str]]:
    """Each drive by its serial, the newest first: what the newest run that had it says, and when it was seen."""
    seen: dict[str, list[Night]] = {}
    for night in nights:
        for group, serial in night.facts:
            if group == DRIVES:
                seen.setdefault(serial, []).append(night)
    for serial, runs in seen.items():
        facts = runs[0].facts
        firmware = facts.get((FIRMWARE, f"of {serial}"))
        what = ", ".join([facts[DRIVES, serial], *([f"firmware {firmware}"] if firmware else [])])
        yield (
            serial,
            what,
            f"{runs[-1].started:%Y-%m-%d} to {runs[0].started:%Y-%m-%d}, {len(runs)} run{'s' * (len(runs) > 1)}",
        )


def _sparks(nights: Sequence[Night]) -> Iterator[tuple[str, tuple[Spark, ...]]]:
    """Requirements of each task over time. Runs of another task, or judged by another definition, measured something else."""
    tasks: dict[tuple[Any, ...], list[Night]] = {}
    for night in reversed(nights):
        tasks.setdefault(night.task, []).append(night)
    for (scenario, target, scale, _), runs in tasks.items():
        newest = runs[-1]
        rows = {row.id: row for row in newest.rows}
        sparks = tuple(spark for row in rows.values() if (spark := _spark(row, runs)))
        if sparks:
            yield " / ".join(part for part in (scenario, target, f"scale {in_digits(scale, 6)}") if part), sparks


def _spark(newest: Judgement, runs: Sequence[Night]) -> Spark | None:
    found = [run.row(newest.id) for run in runs]
    values = [
        row.measured for row in found
        if row is not None and row.measured is not None and row.definition == newest.definition and row.unit == newest.unit
    ]  # fmt: skip
    if len(values) < SPARK_POINTS_MIN:
        return None
    low, high = min([*values, newest.scaled_bound]), max([*values, newest.scaled_bound])
    height, span = SPARK_HEIGHT - 2 * SPARK_EDGE, high - low or 1.0

    def y(value: float) -> float:
        return SPARK_EDGE + height * (1 - (value - low) / span)

    step = (SPARK_WIDTH - 2 * SPARK_EDGE) / (len(values) - 1)
    points = " ".join(f"{SPARK_EDGE + step * number:.1f},{y(value):.1f}" for number, value in enumerate(values))
    unit = "" if newest.unit in ("1", "count") else f" {newest.unit}"
    told = NONE if newest.measured is None else f"{significant(newest.measured, trim=True)}{unit}"
    bound = f"{newest.comparison.replace('_', ' ')} {significant(newest.scaled_bound, trim=True)}{unit}"
    return Spark(newest.id, newest.text, points, round(y(newest.scaled_bound), 1), told, bound, len(values))


def _nights(folder: Path, runs: Sequence[Night], place: _Place) -> Iterator[NightLine]:
    """The nights, the newest first, each no better than its runs are judged now; a run that is gone confirms nothing."""
    known = {night.id: outcome_of(night) for night in runs}
    for one in sorted(folder.glob(f"*/{SOURCE}"), reverse=True) if folder.is_dir() else ():
        if one.parent.is_symlink():
            continue
        try:
            night = find_struct(one.parent, SOURCE, NightDocument)
        except BenchError as error:
            yield NightLine(one.parent.name, "ERROR", f"{SOURCE} cannot be read: {error}", "")
            continue
        if night is None:
            continue  # removed meanwhile
        words = [known.get(run.run_id, INADMISSIBLE) for run in night.runs if run.run_id]
        outcome, headline = reduce(worse, words, night.outcome), night.headline
        first = first_read([outcome, *words, *(run.worst for run in night.runs)])
        if outcome != night.outcome:
            headline = f"{headline} (its {SOURCE} says {shown(night.outcome)}; by its runs as they are now it is {shown(outcome)})"
        page = one.parent / NIGHT_PAGE
        yield NightLine(
            one.parent.name,
            heading(first, map(said, night.runs)),
            headline,
            place.address(page) if page.is_file() else "",
        )


def _write(file: Path, content: Mapping[str, Any]) -> None:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # fmt: skip
    environment.filters["breakable"] = breakable
    script = (TEMPLATES / "site.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = environment.get_template("site.html.j2").render(**content, script=script, digest=digest)
    file.write_text(visible(text), encoding="utf-8")


__all__ = ["CandidatePage", "LeftOut", "NightLine", "RunLine", "Spark", "build"]
