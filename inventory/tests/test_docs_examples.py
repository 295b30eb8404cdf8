"""Every YAML example of the documents is valid as printed: who copies one must not be the first to try it.

A fragment (some keys of a candidate, of a scenario, of a workload) is put where its page says, into what the project ships."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.evidence.demanded_load import check_load
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import check, load_schema, read_yaml
from daq_bench.bench_model.tender.buyer_files import load_prices

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "inventory"
METRICS = load_metrics(INVENTORY / "metrics.yml")
SAFE = YAML(typ="safe")
PARENT_OF = {
    "storages": ("concurrent-analysis", "concurrent_analysis"),
    "hazards": ("raid-vs-3dxp-emulated", "raid_vs_3dxp"),
}


def blocks() -> Iterator[tuple[str, str]]:
    """(file and line, text) of each YAML block of README and docs."""
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = file.read_text(encoding="utf-8")
        for found in re.finditer(r"^```ya?ml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            yield f"{file.name}:{text[: found.start()].count(chr(10)) + 1}", found[1]


BLOCKS = dict(blocks())


def loaded(text: str) -> dict[str, Any]:
    document: dict[str, Any] = SAFE.load(text)
    return document


def dumped(file: Path, document: Any) -> Path:
    stream = StringIO()
    YAML(typ="safe").dump(document, stream)
    file.write_text(stream.getvalue(), encoding="utf-8")
    return file


def accept(text: str, folder: Path) -> str:
    """Loads the example as the bench loads what it is; returns what that was. Raises ProfileError, or KeyError for an unknown kind."""
    document = loaded(text)
    keys = set(document)
    if keys == {"all"}:
        return _inventory(document, text, folder)
    if "conditions" in keys:
        check_load(load_requirements(written(folder, document["id"], text), METRICS))
        return "requirements"
    if keys == {"include"}:
        whole = loaded((INVENTORY / "requirements" / "dune-snb.yml").read_text(encoding="utf-8"))
        whole["conditions"] = loaded((INVENTORY / "requirements" / "dune-scans.yml").read_text())["conditions"]
        load_requirements(dumped(folder / "dune-snb.yml", {**whole, "requirements": [], **document}), METRICS)
        return "include"
    if "extends" in keys:
        load_scenario(written(folder, document["id"], text))
        return "scenario"
    if keys >= {"currency", "date", "prices"}:
        load_prices(written(folder, "prices", text), ["server-a"])
        return "prices"
    if "weights" in keys:
        check(read_yaml(written(folder, "weights", text)), "tender-weights")
        return "weights"
    if all(isinstance(entry, dict) and "path" in entry for entry in document.values()):
        metrics = loaded((INVENTORY / "metrics.yml").read_text(encoding="utf-8"))
        load_metrics(dumped(folder / "metrics.yml", {**metrics, "results": {**metrics["results"], **document}}))
        return "metrics"
    if len(keys) == 1 and (key := next(iter(keys))) in PARENT_OF:
        scenario, workload = PARENT_OF[key]
        whole = load_scenario(INVENTORY / "scenarios" / f"{scenario}.yml").document
        whole["workloads"][workload] = {**whole["workloads"][workload], **document}
        load_scenario(dumped(folder / f"{scenario}.yml", whole))
        return f"{workload}.{key}"
    if len(keys) == 1 and all(isinstance(value, str) for value in document.values()):
        return _variable(next(iter(keys)))
    return _candidate(document, folder)


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.yml"
    file.write_text(text, encoding="utf-8")
    return file


def _inventory(document: dict[str, Any], text: str, folder: Path) -> str:
    whole, file = document["all"], written(folder, "inventory", text)
    if "bench_nightly" in whole.get("vars", {}):
        check(read_yaml(file), "nightly-plan", ("all", "vars", "bench_nightly"))
        return "nightly"
    groups = whole["children"]
    for name in groups.get("candidates", {}).get("hosts", {}):
        load_candidate(file, name)
    for host in groups.get("observability", {}).get("hosts", {}).values():
        for variable in host:
            if not variable.startswith("ansible_"):
                _variable(variable)
    return next(iter(groups))


def _variable(name: str) -> str:
    """An Ansible variable: a role or a playbook must know it."""
    files = [file for file in (ROOT / "ansible").rglob("*.yml") if re.search(rf"\b{name}\b", file.read_text())]
    if not files:
        raise KeyError(name)
    return "variable"


def _candidate(document: dict[str, Any], folder: Path) -> str:
    """Some keys of a candidate, in the one of docs/own-hardware.md."""
    whole = loaded(next(text for place, text in BLOCKS.items() if place.startswith("own-hardware.md")))
    hosts = whole["all"]["children"]["candidates"]["hosts"]
    name, host = next(iter(hosts.items()))
    if len(document) == 1 and "bench_candidate" in (own := next(iter(document.values()))):
        document = own["bench_candidate"]
    elif set(document) == {"bench_candidate"}:
        document = document["bench_candidate"]
    if not set(document) <= set(load_schema("candidate")["properties"]):
        raise KeyError(sorted(document))
    candidate = {**copy.deepcopy(host["bench_candidate"]), **document}
    if "target" in document:
        del candidate["targets"]
    if "identity" not in document:  # the example's drives are those of another machine
        candidate["identity"].pop("drives", None)
    host["bench_candidate"] = candidate
    load_candidate(dumped(folder / "inventory.yml", whole), name)
    return "candidate"


@pytest.mark.parametrize("place", BLOCKS)
def test_an_example_of_the_documents_is_valid_as_printed(place: str, tmp_path: Path) -> None:
    assert accept(BLOCKS[place], tmp_path)


def test_the_examples_are_found() -> None:
    assert {"own-hardware.md", "writing-a-requirement.md", "nightly.md"} <= {
        place.partition(":")[0] for place in BLOCKS
    }
    assert len(BLOCKS) > 15


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("conditions:", "      io_depth: 8\n", ""),
        ("conditions:", "id: SNB-07", "id: SNB-07\n    sevrity: mandatory"),
        ("extends:", "block_scan: null", "block_scam: null"),
        ("extends:", "extends: snb-100s", "extends: snb-99s"),
        ("include:", "SCAN-05", "SCAN-99"),
        ("samples:", "unit: B/s", "unit: B/h"),
        ("drive_ratings:", "dwpd: 3", "dwpd: many"),
        ("rack_units:", "level: 5", "level: 7"),
        ("storages:", "storages:", "storage:"),
        ("bench_nightly:", "keep_passes: 30", "keep_passes: -1"),
        ("grafana_report_base_url", "grafana_report_base_url", "grafana_report_url"),
    ],
)
def test_an_example_that_went_stale_is_seen(kind: str, old: str, new: str, tmp_path: Path) -> None:
    text = next(text for text in BLOCKS.values() if kind in text)
    assert old in text
    with pytest.raises((ProfileError, KeyError)):
        accept(text.replace(old, new), tmp_path)
