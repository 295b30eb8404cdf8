"""Documents with types: one definition gives writer, reader and schema; what is not of the type is named by its field."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from daq_bench.audit.good.small_run import some_run
from filled import filled
from msgspec import inspect

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.bundle.files import read_json
from daq_bench.bench_model.documents.struct import SCHEMA_VERSION, Struct, as_document, read
from daq_bench.bench_model.documents.verdict import Finding, Judgement, Spread, Verdict
from daq_bench.bench_model.evidence import derived
from daq_bench.bench_model.evidence.schemas import TYPES, schemas
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.profiles import yaml_source
from daq_bench.bench_model.profiles.scenarios import workload_names
from daq_bench.bench_model.profiles.yaml_source import SCHEMAS, check_document

ROW = Judgement(
    id="R-1", text="No loss", metric="snb_record.lost_superchunks", comparison="equal", bound=0.0, unit="count", scaled_bound=0.0,
    guard_band=0.0, measured=0.0, n=1, spread=Spread("repetitions", 1, 0.0, 0.0, 0.0, None), confidence=None,
    confidence_interval=None, interval_method=None, decision="met", more_repetitions=None, length_factor=None, margin=0.0,
    margin_percent=None, severity="mandatory", statistic="max", outcome="PASS", reason="Met", evidence=["results/snb_record.json"],
    source="section 5",
)  # fmt: skip
WHOLE = Verdict(1, "PASS", ["met"], 1.0, False, [Finding("text", False, ("run.json",))], [ROW])


def test_a_types_schema_names_its_fields_and_what_they_may_be() -> None:
    made = {name: json.loads(text) for name, text in schemas()}
    assert {"run.schema.json", "verdict.schema.json", "snb-record.schema.json", "read-scan.schema.json"} <= made.keys()
    one = made["verdict.schema.json"]
    assert (one["title"], one["$ref"]) == ("verdict.json", "#/$defs/Verdict")
    verdict = one["$defs"]["Verdict"]
    assert verdict["properties"]["outcome"] == {"enum": ["ERROR", "FAIL", "INADMISSIBLE", "PASS"]}
    assert verdict["additionalProperties"] is False and {"outcome", "reasons", "requirements"} <= {*verdict["required"]}


def test_no_schema_that_is_made_is_one_that_git_holds() -> None:
    """inventory/schemas/.gitignore names those that are written by hand."""
    asked = ["git", "-C", str(SCHEMAS), "ls-files", "*.json"]
    held = set(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())
    made = dict(schemas()).keys()
    assert held and held.isdisjoint(made)
    assert {file.name for file in SCHEMAS.glob("*.json")} == held | made


def test_a_schema_that_is_missing_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(yaml_source, "SCHEMAS", tmp_path)
    with pytest.raises(BenchError, match=r"verdict\.schema\.json is missing\. `make schemas` writes") as caught:
        yaml_source.load_schema("verdict")
    assert "\n" not in str(caught.value)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """As much of a fresh clone as makes what git does not hold, with the environment of this one."""
    for name in ("inventory/daq_bench/bench_model", "reports/daq_bench/bench_dashboards", "ansible/bootstrap"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "shipped"))
    shutil.copy(REPOSITORY / "inventory" / "metrics.yml", tmp_path / "inventory")
    (tmp_path / "robot-suites" / "daq_bench" / "rig").mkdir(parents=True)  # by which a checkout is known
    made = dict(schemas()).keys()
    shutil.copytree(SCHEMAS, tmp_path / "inventory" / "schemas", ignore=lambda _, names: made & set(names))
    (tmp_path / ".venv").symlink_to(REPOSITORY / ".venv")
    return tmp_path


def test_a_clone_gets_what_git_does_not_hold_and_again_what_is_missing_or_older(clone: Path) -> None:
    def generated() -> str:
        argv = [str(clone / "ansible" / "bootstrap" / "generated.sh")]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    schema, board = clone / "inventory" / "schemas" / "run.schema.json", clone / "reports" / "dashboards"
    assert not schema.exists()
    said = "generated: inventory/schemas and reports/dashboards are written\n"
    assert (generated(), generated()) == (said, "")
    assert schema.read_text(encoding="utf-8") == dict(schemas())["run.schema.json"]
    assert {file.name for file in board.glob("*.json")} == {
        f"daq-bench-{name}.json" for name in ("compare", "drive-history", "drives", "fleet", "live")
    }
    alerts = board / "alerting" / "daq-bench.json"
    for file in (schema, alerts):
        file.unlink()
        assert (generated(), generated()) == (said, "") and file.exists()
    table = clone / "inventory" / "daq_bench" / "bench_model" / "evidence" / "schemas.py"
    table.write_text(table.read_text(encoding="utf-8").replace('"event.json": Event', '"else.json": Event'), "utf-8")
    assert generated() == said
    assert (schema.parent / "else.schema.json").exists()


def test_without_an_environment_it_says_how_to_make_one(clone: Path) -> None:
    (clone / ".venv").unlink()
    argv = [str(clone / "ansible" / "bootstrap" / "generated.sh")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"generated: error: {clone}/.venv has no Python\n  make python\n")


@pytest.mark.parametrize("workload", workload_names())
def test_the_result_of_every_workload_has_a_schema_that_it_is_held_against(workload: str) -> None:
    """Written by hand or made from its type: without one, anything at all would be sound."""
    assert (SCHEMAS / f"{workload.replace('_', '-')}.schema.json").is_file()
    file = f"results/{workload}.json"
    assert fault_of(file, {}).startswith(f"{file} is not what the bench writes")


def test_a_document_keeps_to_the_schema_of_its_type_and_is_read_again() -> None:
    document = msgspec.json.decode(msgspec.json.encode(as_document(WHOLE)))
    check_document(document, "verdict", "verdict.json")
    assert read(document, Verdict, "verdict.json") == WHOLE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": "GOOD"}, r"verdict\.json: outcome: Invalid enum value"),
        ({"outcome": None}, r"verdict\.json: outcome: Expected"),
        ({"requirements": None}, r"verdict\.json: requirements: Expected `array`, got `null`"),
        ({"requirements": [{}]}, r"verdict\.json: requirements\[0\]: .*missing required field `id`"),
        ({"declared_rehearsal": "no"}, r"verdict\.json: declared_rehearsal: Expected `bool`, got `str`"),
        ({"schema_version": 0}, r"verdict\.json: schema_version: Invalid enum value 0"),
    ],
)
def test_what_is_not_of_the_type_is_named_by_its_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        read({**as_document(WHOLE), **change}, Verdict, "verdict.json")


@pytest.mark.parametrize("change", [{}, {"no_such_field": 1}, {"outcome": "REVIEW"}, {"reasons": None}])
def test_a_newer_document_says_so_whatever_else_is_new_in_it(change: dict[str, Any]) -> None:
    with pytest.raises(BenchError) as refused:
        read({**as_document(WHOLE), **change, "schema_version": 99}, Verdict, "verdict.json")
    assert str(refused.value) == (
        "verdict.json: a newer bench wrote it (schema_version 99; this bench reads up to 1). Update this bench (in a checkout: "
        "`git pull`, then `make setup`), or use the one that wrote it"
    )


@pytest.mark.parametrize("version", [0, -1, True, "99", 99.0, None, [99]])
def test_a_version_that_no_bench_writes_is_no_newer_one(version: object) -> None:
    with pytest.raises(
        BenchError, match=r"schema_version: .*The file is damaged, altered, or of another version of the bench"
    ) as refused:
        read({**as_document(WHOLE), "schema_version": version}, Verdict, "verdict.json")
    assert "newer" not in str(refused.value)


class Outer(Struct, frozen=True):
    inner: list[Verdict]


def test_a_newer_document_within_another_says_so() -> None:
    with pytest.raises(BenchError, match=r"^raw\.json: a newer bench wrote it \(schema_version 2; "):
        read({"inner": [as_document(WHOLE), {**as_document(WHOLE), "schema_version": 2}]}, Outer, "raw.json")


def test_every_type_has_the_version_that_is_told() -> None:
    """A type of version 2 needs a message that knows it."""
    stated = {
        kind.__name__: field.type
        for kind in TYPES.values()
        for field in inspect.type_info(kind).fields  # type: ignore[attr-defined]  # every type is a struct
        if field.encode_name == "schema_version"
    }
    assert len(stated) > 10
    assert {
        name for name, kind in stated.items() if kind not in (inspect.LiteralType((SCHEMA_VERSION,)), inspect.IntType())
    } == set()


def test_a_field_that_is_missing_is_no_default(tmp_path: Path) -> None:
    """The reader assumes no field that a verdict rests on: it asks for each one by name."""
    for name in ("schema_version", "outcome", "reasons", "scale", "declared_rehearsal", "findings", "requirements"):
        document = as_document(WHOLE)
        del document[name]
        with pytest.raises(BenchError, match=f"missing required field `{name}`"):
            read(document, Verdict, "verdict.json")
    for name in ("measured", "bound", "decision", "outcome", "severity"):
        row = as_document(ROW)
        del row[name]
        with pytest.raises(BenchError, match=f"missing required field `{name}`"):
            read({**as_document(WHOLE), "requirements": [row]}, Verdict, "verdict.json")


def test_every_type_names_the_document_that_it_is() -> None:
    assert {"run.json", "results/snb_record.json", "facts/tuning.json"} <= TYPES.keys()


@pytest.mark.parametrize(
    ("name", "document", "complaint"),
    [
        ("results/drive_temperature.json", {"schema_version": 1}, "is not what the bench writes"),
        ("results/cost.json", {"schema_version": 1, "summary": {"power_w": math.nan}, "reasons": {}}, "nan"),
        ("results/hardware_events.json", {"schema_version": 2}, "is not what the bench writes"),
    ],
)
def test_a_derived_document_is_checked_when_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, document: dict[str, Any], complaint: str
) -> None:
    """It is named and not stored; the others are made all the same."""
    (tmp_path / "run.json").write_text(json.dumps(as_document(some_run())), encoding="utf-8")
    monkeypatch.setattr(
        derived, "MAKERS", {name: lambda bundle, run: document, "results/x.json": lambda bundle, run: {"a": 1}}
    )
    made, faults = derived.documents(tmp_path)
    assert list(made) == ["results/x.json"]
    assert [fault.name for fault in faults] == [name]
    assert complaint in faults[0].reason.lower()


EVERY = sorted(TYPES)


@pytest.mark.parametrize("file", EVERY)
def test_what_every_document_must_hold_is_missed_and_what_it_must_not_is_named(file: str) -> None:
    """Each field in turn: missing, null, of another type, no finite number; and where every version wrote the same fields, one more."""
    kind = TYPES[file]
    whole = filled({}, kind)
    assert fault_of(file, whole) == ""
    for field in inspect.type_info(kind).fields:  # type: ignore[attr-defined]  # of a Struct
        name = field.encode_name
        if field.required:
            assert f"`{name}`" in fault_of(file, {key: one for key, one in whole.items() if key != name})
        for value in ([None] if not _nullable(field.type) else []) + [object_of_another_type(field.type), math.nan]:
            assert name in fault_of(file, {**whole, name: value}), (name, value)
    if kind.__struct_config__.forbid_unknown_fields:
        assert "surplus" in fault_of(file, {**whole, "surplus": 1})
    assert fault_of(file, [whole]) and fault_of(file, "x")  # type: ignore[arg-type]  # what no writer leaves


def _nullable(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.AnyType | inspect.NoneType) or (
        isinstance(kind, inspect.UnionType) and any(isinstance(one, inspect.NoneType) for one in kind.types)
    )


def object_of_another_type(kind: inspect.Type) -> object:
    """A text where the field takes none, else a map that holds what is no finite number."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    texts = any(isinstance(one, inspect.StrType | inspect.AnyType) or "EnumType" in type(one).__name__ for one in kinds)
    return {"x": math.inf} if texts or any(isinstance(one, inspect.LiteralType) for one in kinds) else "x"


@pytest.mark.parametrize("file", EVERY)
def test_a_key_that_stands_twice_in_a_document_is_refused(file: str, tmp_path: Path) -> None:
    """Two readers could each take another of the two."""
    whole = filled({}, TYPES[file])
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(f'{{"{next(iter(whole))}": 2, {json.dumps(whole)[1:]}', encoding="utf-8")
    with pytest.raises(BenchError, match="stands twice"):
        read_json(tmp_path, file)
