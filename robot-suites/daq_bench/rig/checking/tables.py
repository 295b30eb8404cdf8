"""A run's numbers as plain tables, for spreadsheets, pandas, R and databases: `daq-bench tables runs/<id> --output folder`.

Promise: the bundle is only read; the folder appears whole or not at all. Each number stands as the bundle stores it, and its unit is in its
column's name or beside it. `about.json` says whether the run counts."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.bundle.files import (
    find_document,
    find_json,
    find_struct,
    plain_file,
    read_json_lines,
    refuse_no_bundle,
    require_sound,
    survey,
    text_lines,
)
from daq_bench.bench_model.bundle.line_protocol import Point, parse_line
from daq_bench.bench_model.bundle.telemetry_files import points_files
from daq_bench.bench_model.documents.admission import Admission
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import text_of, without_lines
from daq_bench.bench_model.verdict.judging import standing_of
from daq_bench.rig.base.bundle import to_json

FORMATS = ("csv", "parquet")
TELEMETRY = "telemetry-"  # and the measurement's name
JUDGEMENT = (
    "id", "text", "metric", "comparison", "bound", "scaled_bound", "unit", "measured", "confidence", "interval_low", "interval_high",
    "interval_method", "n", "statistic", "decision", "outcome", "severity", "margin_percent", "reason",
)  # fmt: skip
NUMBERS_OF_JUDGEMENT = (
    "bound", "scaled_bound", "measured", "confidence", "interval_low", "interval_high", "n", "margin_percent",
)  # fmt: skip
EVENT = ("time_utc", "kind", "source", "text", "data")
RESULT = ("document", "field", "value")
SERIES = ("document", "series", "t_s")
TIME = ("time", "time_ns")
FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)  # full-width signs count as well in East Asian settings
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
Cell = object
Row = Iterable[Cell]
Kinds = dict[str, type]


def write_tables(bundle: Path, out: Path, form: str = "csv", door: Admission | None = None) -> list[str]:
    """`door`: what the door of check-bundle found, for `about.json`. Writes the tables of
    `bundle` into the new folder `out`; returns their files. Raises BenchError where the bundle is invalid or damaged,
    where `out` holds anything or lies in the bundle, and for parquet without pyarrow."""
    _require_free(bundle, out)
    require_sound(bundle)
    if find_struct(bundle, "run.json", Run) is None:
        refuse_no_bundle(bundle)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as temporary:
            made = Path(temporary) / "tables"
            made.mkdir()
            kinds = _write_csv(bundle, made)
            if form == "parquet":
                _to_parquet(made, kinds)
            files = sorted(file.name for file in made.iterdir())
            (made / "about.json").write_text(to_json(_about(bundle, files, door)), encoding="utf-8")
            if out.exists():
                out.rmdir()  # empty, as was seen above; else this refuses
            made.replace(out)
    except OSError as error:
        raise BenchError(
            f"{out} cannot be made: {in_words(error)}. Make room or name another {typed('--output')}"
        ) from None
    return ["about.json", *files]


def _require_free(bundle: Path, out: Path) -> None:
    if out.resolve().is_relative_to(bundle.resolve()):
        raise BenchError(f"{typed('--output', out)} lies in the bundle, which is sealed. Name a folder beside it")
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise BenchError(
            f"{typed('--output', out)} is there already, and is no empty folder. Name a new one, or remove it"
        )


def _about(bundle: Path, files: list[str], door: Admission | None) -> dict[str, Any]:
    run, standing = find_document(bundle, "run.json") or {}, standing_of(bundle)
    return {
        "run": run.get("run_id"), "candidate": _name(run, "candidate", "name"), "scenario": _name(run, "scenario", "id"),
        "scale": (run.get("scenario") or {}).get("scale"), "state": run.get("state"),
        "standing": standing.state, "reason": standing.reason or None,
        "outcome": standing.verdict.outcome if standing.verdict else None,
        "rehearsal": standing.verdict.declared_rehearsal if standing.verdict else None, "tables": files,
        "telemetry_units": _units(bundle),
        "signature": door.signature if door else None, "marks": list(door.marks) if door else ["not checked"],
        "problems": door.problems if door else None,
    }  # fmt: skip


def _name(run: dict[str, Any], part: str, key: str) -> str | None:
    found = run.get(part)
    return str(found[key]) if isinstance(found, dict) and key in found else None


def _units(bundle: Path) -> dict[str, dict[str, str]]:
    """Units of each measurement's columns, as the run's own copy of metrics.yml declares them."""
    file = plain_file(bundle, "profiles/metrics.yml")
    if file is None:
        return {}
    declared = plain(without_lines(file, text_of(file)).data).get("measurements", {})
    return {name: {field: str(of["unit"]) for field, of in one["fields"].items()} for name, one in declared.items()}


def _write_csv(bundle: Path, folder: Path) -> dict[str, Kinds]:
    """Writes all tables; returns the kinds of their columns, by file. Columns that are not named are text."""
    _table(folder / "requirements.csv", JUDGEMENT, _judgements(bundle))
    _table(folder / "events.csv", EVENT, _events(bundle))
    _table(folder / "results.csv", RESULT, _numbers(bundle))
    heads = _series(bundle, folder / "series.csv")
    return {
        "requirements.csv": dict.fromkeys(NUMBERS_OF_JUDGEMENT, float),
        "results.csv": {"value": float},
        "series.csv": dict.fromkeys(("t_s", *heads), float),
        **_telemetry(bundle, folder),
    }


def _table(file: Path, heads: Iterable[str], rows: Iterable[Row]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([_cell(head) for head in heads])
        writer.writerows([_cell(cell) for cell in row] for row in rows)


def _cell(cell: Cell) -> Cell:
    """None is an empty cell; a number stands with all its digits; a control character is written as an escape. A text that a spreadsheet
    would take for a formula begins with an apostrophe; a text that is a number does not: -5 and +5 are no formulas."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return repr(cell)
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False)
    if isinstance(cell, str):
        if any(ord(one) < 32 or ord(one) == 127 for one in cell):
            cell = cell.encode("unicode_escape").decode("ascii")
        return f"'{cell}" if cell.lstrip().startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell
    return cell


def _judgements(bundle: Path) -> Iterator[Row]:
    for row in (find_document(bundle, "verdict.json") or {}).get("requirements", []):
        low, high = row.get("confidence_interval") or (None, None)
        yield [{**row, "interval_low": low, "interval_high": high}.get(head) for head in JUDGEMENT]


def _events(bundle: Path) -> Iterator[Row]:
    for event in read_json_lines(bundle, "events.jsonl"):
        more = {key: value for key, value in event.items() if key not in EVENT}
        yield [event.get("time_utc"), event.get("kind"), event.get("source"), event.get("text"), more or None]


def _results(bundle: Path) -> Iterator[tuple[str, Any]]:
    names = (name for name in survey(bundle).files if name.startswith("results/") and name.endswith(".json"))
    for name in names:
        if name.count("/") == 1:
            yield name.removeprefix("results/").removesuffix(".json"), find_json(bundle, name)


def _numbers(bundle: Path) -> Iterator[Row]:
    """Every number of the results by its place; the series have a table of their own."""
    for document, content in _results(bundle):
        for place, value in _leaves(content, ""):
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield document, place, value


def _leaves(node: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for key, inner in node.items():
            if not _is_series(inner):
                yield from _leaves(inner, f"{place}.{key}" if place else key)
    elif isinstance(node, list):
        for number, inner in enumerate(node):
            yield from _leaves(inner, f"{place}[{number}]")
    else:
        yield place, node


def _is_series(node: Any) -> bool:
    """Lists of equal length beside their times `t_s`."""
    if not isinstance(node, dict) or not isinstance(node.get("t_s"), list):
        return False
    return all(len(value) == len(node["t_s"]) for value in node.values() if isinstance(value, list))


def _found_series(node: Any, place: str) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    if _is_series(node):
        yield place, {key: value for key, value in node.items() if isinstance(value, list)}
    elif isinstance(node, dict):
        for key, inner in node.items():
            yield from _found_series(inner, f"{place}.{key}" if place else key)
    elif isinstance(node, list):
        for number, inner in enumerate(node):
            yield from _found_series(inner, f"{place}[{number}]")


def _series(bundle: Path, file: Path) -> list[str]:
    """Columns over time out of the results, one row for each of their times; a column that a series lacks is empty."""
    found = [(document, *one) for document, content in _results(bundle) for one in _found_series(content, "")]
    heads = list(dict.fromkeys(key for *_, columns in found for key in columns if key != "t_s"))
    rows = (
        [document, place, at, *(columns[head][number] if head in columns else None for head in heads)]
        for document, place, columns in found
        for number, at in enumerate(columns["t_s"])
    )
    _table(file, (*SERIES, *heads), rows)
    return heads


def _telemetry(bundle: Path, folder: Path) -> dict[str, Kinds]:
    """A table for each measurement, a row for each point. The spools are read twice: for the columns, and for the rows."""
    columns: dict[str, tuple[dict[str, None], Kinds]] = {}
    kinds: dict[str, Kinds] = {}
    for point in _points(bundle):
        tags, fields = columns.setdefault(point.measurement, ({}, {}))
        tags.update(dict.fromkeys(point.tags))
        for name, value in point.fields.items():
            fields[name] = _common(fields.get(name, type(value)), type(value))
    with ExitStack() as stack:
        writers = {}
        for number, (name, (tags, fields)) in enumerate(sorted(columns.items())):
            plain_name = name if name.replace("_", "").isalnum() and name.isascii() else f"measurement-{number}"
            file = stack.enter_context(
                (folder / f"{TELEMETRY}{plain_name}.csv").open("w", encoding="utf-8", newline="")
            )
            writers[name] = csv.writer(file, lineterminator="\n")
            heads = [f"field_{one}" if one in tags else one for one in fields]
            writers[name].writerow([_cell(head) for head in (*TIME, *tags, *heads)])
            kinds[Path(file.name).name] = {"time_ns": int, **dict(zip(heads, fields.values(), strict=True))}
        for point in _points(bundle):
            tags, fields = columns[point.measurement]
            row = [
                _utc(point.time_ns),
                point.time_ns,
                *(point.tags.get(tag) for tag in tags),
                *(point.fields.get(one) for one in fields),
            ]
            writers[point.measurement].writerow([_cell(cell) for cell in row])
    return kinds


def _common(one: type, other: type) -> type:
    """The kind of a column that holds both."""
    return one if one is other else float if {one, other} == {int, float} else str


def _points(bundle: Path) -> Iterator[Point]:
    for file in points_files(bundle):
        for number, line in enumerate(text_lines(file), start=1):
            if line.endswith("\n"):
                try:
                    yield parse_line(line.rstrip("\r\n"))
                except ValueError as error:
                    raise BenchError(f"{file}:{number}: not line protocol: {error}") from None


def _utc(time_ns: int) -> str:
    """ISO 8601 with nanoseconds; empty for a time that no calendar has."""
    try:
        seconds = datetime.fromtimestamp(time_ns // 10**9, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{time_ns % 10**9:09d}Z"


def _to_parquet(folder: Path, kinds: dict[str, Kinds]) -> None:
    """Each CSV as Parquet. A serial number stays text even if it has digits alone, and an empty cell becomes null."""
    try:
        import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
        from pyarrow import csv as arrow_csv  # type: ignore[import-untyped, import-not-found, unused-ignore]
        from pyarrow import parquet  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise BenchError(
            f"{typed('--format', 'parquet')} needs pyarrow, which the bench does not install. Run "
            f"`.venv/bin/python -m pip install pyarrow`, or take {typed('--format', 'csv')}"
        ) from None
    types = {float: pyarrow.float64(), int: pyarrow.int64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    for file in sorted(folder.glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as stream:
            heads = next(csv.reader(stream))
        chosen = {head: types[kinds.get(file.name, {}).get(head, str)] for head in heads}
        converting = arrow_csv.ConvertOptions(
            column_types=chosen, strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        parsing = arrow_csv.ParseOptions(newlines_in_values=True)
        try:
            table = arrow_csv.read_csv(file, parse_options=parsing, convert_options=converting)
        except pyarrow.ArrowInvalid as error:
            raise BenchError(
                f"{file.stem}: cannot be written as Parquet ({error}). Take {typed('--format', 'csv')}"
            ) from None
        parquet.write_table(table, file.with_suffix(".parquet"))
        file.unlink()
