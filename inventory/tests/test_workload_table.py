"""One table: each workload that a scenario may name has a model, or the first command stops and says what is missing."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

from daq_bench.bench_model.evidence import derived
from daq_bench.bench_model.evidence.schemas import TYPES
from daq_bench.bench_model.profiles.scenarios import workload_names
from daq_bench.bench_model.workloads.table import MODELS, model_of, part_of

REPOSITORY = Path(__file__).resolve().parents[2]
WORKLOADS = REPOSITORY / "inventory" / "daq_bench" / "workloads"
FOLDERS = [one.name for one in iter_modules([str(WORKLOADS)])]


def test_the_models_stand_in_the_order_of_the_table() -> None:
    names = workload_names()
    assert list(MODELS)[: len(names)] == names  # tests make up more


@pytest.mark.parametrize("name", workload_names())
def test_what_a_model_names_is_made_and_read_by_its_type(name: str) -> None:
    model = MODELS[name]
    assert TYPES.get(f"results/{name}.json") is model.result
    for one in model.beside:
        assert one.make or one.held, one.file
        assert derived.MAKERS.get(one.file) is one.make
        assert TYPES.get(one.file) is one.kind


def test_no_document_is_made_twice() -> None:
    files = [one.file for model in MODELS.values() for one in model.beside]
    assert len(files) == len(set(files))
    assert len(derived.MAKERS) == 11 + len([one for model in MODELS.values() for one in model.beside if one.make])


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nobody_wrote_it", None),
        ("lacks_it", {}),
        ("another_thing", {"MODEL": {"coverage": None}}),
    ],
)
def test_a_workload_without_a_model_stops_at_import(
    name: str, found: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if found is not None:
        package = sys.modules["daq_bench.bench_model.workloads"]
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        text = "".join(f"{key} = {value!r}\n" for key, value in found.items())
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    with pytest.raises(
        ImportError, match=rf"workload '{name}' has no model: write daq_bench\.bench_model\.workloads\.{name} with"
    ):
        model_of(name)
    sys.modules.pop(f"daq_bench.bench_model.workloads.{name}", None)


def test_a_room_without_a_model_stops_at_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package: ModuleType = sys.modules["daq_bench.bench_model.workloads"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    (tmp_path / "a_room").mkdir()
    (tmp_path / "a_room" / "__init__.py").write_text("", encoding="utf-8")
    with pytest.raises(ImportError, match=r"write daq_bench\.bench_model\.workloads\.a_room\.model with"):
        model_of("a_room")
    sys.modules.pop("daq_bench.bench_model.workloads.a_room", None)


def test_the_contract_of_independence_names_every_workload() -> None:
    """A folder is found by the wildcard; other folders would miss a workload that comes later."""
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (own,) = (one for one in contracts if one["name"] == "workloads know no other workload")
    named = {f"daq_bench.rig.workloads.{name}" for name in workload_names() if name not in FOLDERS}
    assert set(own["modules"]) == {"daq_bench.workloads.*", *named}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_has_every_part_and_no_module_that_the_contracts_do_not_name(name: str) -> None:
    """A module of another name could import a host into what judges."""
    parts = {one.name for one in iter_modules([str(WORKLOADS / name)])}
    assert {"plan", "model", "run", "report"} <= parts <= {"document", "plan", "model", "run", "report"}
    assert name in workload_names()


def test_a_folder_is_taken_before_a_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And one that lacks its model stops every command."""
    package = sys.modules["daq_bench.workloads"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "__init__.py").write_text("", encoding="utf-8")
    assert part_of("half", "run", "daq_bench.rig.workloads.half", "workload") == "daq_bench.workloads.half.run"
    assert part_of("lan", "model", "daq_bench.bench_model.workloads.lan", "model") == "daq_bench.workloads.lan.model"
    with pytest.raises(
        ImportError, match=r"workload 'half' has no model: write daq_bench\.workloads\.half\.model with"
    ):
        model_of("half")
