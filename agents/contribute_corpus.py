"""Adds what one tool really printed of a server to `inventory/corpus`: `make contribute-corpus CASE= KIND= RAW= SOURCE= LICENCE=`.

Promise: serial numbers, world-wide names, addresses, host names and secrets are removed, wherever in the text they stand again;
a text in which one remains, or which its kind does not have the form of, is refused. The case is written whole or not at all, and
no case is replaced. `expected.json` holds what the bench reads today: it counts once a person has compared it with the tool's
documentation and has written so into `reviewed` of `case.json`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import corpus_trees
from corpus_secrets import redacted
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.struct import Struct, as_document, read
from daq_bench.candidate_kit.lsblk import everything
from daq_bench.rig.workloads.shared import fio
from daq_bench.telemetry_agent.devices import nvme_pages, redfish_inlet, smartctl_json
from daq_bench.telemetry_agent.devices.drive_questions import behind_of
from daq_bench.telemetry_agent.devices.ipmi_text import parse_log, parse_power, parse_sensors
from daq_bench.workloads.lan.model import iperf3, perftest

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "inventory/corpus"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{2,60}")
NOT_YET = "not yet"


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """A case's `case.json`."""

    kind: str
    source: str  # repository and path at a commit
    licence: str
    composed: bool  # false: a program or server really said it
    reviewed: str  # who compared which result with what
    version: str = ""  # of the tool or firmware
    cut: str = ""  # what of the original is left out


def about_of(case: Path) -> About:
    """Read `case.json`. Raises BenchError that names file and field."""
    file = case / "case.json"
    return read(json.loads(file.read_text(encoding="utf-8")), About, str(file))


def _smartctl(text: str) -> dict[str, Any]:
    document, faults = _object(text), list[str]()
    fault = smartctl_json.answer_fault(document)
    if fault:
        return {"no_data": fault}
    found = {
        "fields": smartctl_json.health_fields(document, faults),
        "temperatures": smartctl_json.temperatures(document),
        "limits": smartctl_json.limits(document, faults),
    }
    return found | {"faults": list(dict.fromkeys(faults))}


def _scan(text: str) -> dict[str, Any]:
    return {"behind": behind_of(_object(text))}


def _dcmi(text: str) -> dict[str, Any]:
    try:
        found = parse_power(text)
    except ValueError as error:
        return {"no_reading": str(error)}
    return {"watts": found.watts if found else None}


def _sdr(text: str) -> dict[str, Any]:
    found, faults = parse_sensors(text)
    return {"sensors": [[one.sensor, one.entity, one.unit, one.value, one.state] for one in found], "faults": faults}


def _sel(text: str) -> dict[str, Any]:
    entries, faults = parse_log(text)
    return {"entries": [list(one) for one in entries], "faults": faults}


def _iperf3(text: str) -> dict[str, Any]:
    """An answer of iperf3 that is no measurement (an error, UDP) is a case too: nothing may be read from it."""
    try:
        found = iperf3.parse(text)
    except ValueError as error:
        if not str(_object(text).get("start", {}).get("version", "")).startswith("iperf "):
            raise
        return {"refused": str(error)}
    return {"bytes_per_s": found.bytes_per_s, "sent_again": found.sent_again, "samples": len(found.samples_bytes_per_s)}


def _perftest_bandwidth(text: str) -> dict[str, Any]:
    return vars(perftest.parse_bandwidth(text, _message_bytes(text)))


def _perftest_latency(text: str) -> dict[str, Any]:
    return vars(perftest.parse_latency(text, _message_bytes(text)))


def _message_bytes(text: str) -> int:
    match = re.search(r"^#bytes.*\n\s*(\d+)", text, re.MULTILINE)
    if match is None:
        raise ValueError("it has no table of perftest")
    return int(match[1])


def _fio(text: str) -> dict[str, Any]:
    document = fio.document_of(text, "a case of the corpus")
    errors = {job["jobname"]: job["error"] for job in document["jobs"] if job["error"]}
    if errors:
        try:
            fio.jobs_of(text, "a case of the corpus")
        except BenchError as error:
            return {"refused": str(error)}
        raise ValueError(f"the bench reads jobs that failed: {errors}")
    jobs = fio.jobs_of(text, "a case of the corpus")
    found: dict[str, Any] = {}
    for job in jobs:
        twins = sum(name.partition("#")[0] == job["jobname"] for name in found)
        name = f"{job['jobname']}#{twins + 1}" if twins else job["jobname"]  # --numjobs without a group
        found[name] = {way: fio.direction(job, way) for way in ("read", "write")}
    return found


def _nvme_health(text: str) -> dict[str, Any]:
    page = bytes.fromhex(text)
    return {"fields": nvme_pages.health_fields(page), "temperatures": nvme_pages.temperatures(page)}


def _redfish_inlet(text: str) -> dict[str, Any]:
    """Reads a document Thermal, ThermalMetrics or Sensor."""
    document = _object(text)
    resource = str(document.get("@odata.type", "")).lstrip("#").partition(".")[0]
    read = {**redfish_inlet.READERS, "Sensor": redfish_inlet.of_sensor}.get(resource)
    if read is None:
        raise ValueError(f"its @odata.type is {resource[:40]!r}, not Thermal, ThermalMetrics or Sensor")
    inlets, faults = read(document)
    return {"inlets": [list(one) for one in inlets], "faults": faults}


BIOS_ASKED = {
    "power_profile": ("maximum-performance", "balanced", "power-saving"),
    "cstates": ("on", "off"),
    "turbo": ("on", "off"),
    "memory_speed": ("maximum", "auto"),
}


def _redfish_bios(text: str) -> dict[str, Any]:
    """Returns what the role bios would set of a resource Bios, or of an attribute registry, whose defaults then count as what is set.

    By the names of all vendors: neither document says its maker in one way."""
    bios = corpus_trees.module_util("bench_bmc/bios")
    vendors = YAML(typ="safe").load(ROOT / "ansible/roles/bios/vars/main/vendors.yml")["__bios_vendors"]
    document = _object(text)
    if "RegistryEntries" in document:
        entries = document["RegistryEntries"]["Attributes"]
        current = {one["AttributeName"]: one.get("CurrentValue") or one.get("DefaultValue") for one in entries}
        offered = {
            one["AttributeName"]: [str(value["ValueName"]) for value in one["Value"]]
            for one in entries
            if one.get("Value")
        }
    else:
        current, offered = document["Attributes"], {}
    if not isinstance(current, dict) or not current:
        raise ValueError("it has no attributes of a BIOS")
    firmware = bios.Firmware(current, {}, offered)
    found: dict[str, Any] = {}
    for setting, values in BIOS_ASKED.items():
        plans = {asked: bios.plan(vendors, "redfish", setting, asked, firmware) for asked in values}
        # The names that were looked for, in brackets, grow with every vendor.
        found[setting] = {
            asked: {"unsupported": one.unsupported.partition(" (looked for")[0]}
            if one.unsupported
            else {"in_force": {wish.attribute: wish.value for wish in one.wishes}}
            | ({"fallback": True} if one.fallback else {})
            | (
                {"only_with": sorted({wish.bound_to for wish in one.wishes if wish.bound_to})}
                if any(w.bound_to for w in one.wishes)
                else {}
            )
            for asked, one in plans.items()
        }
    return found


def _storage_parts() -> Any:
    """Provisioning's package bench_storage, whose modules import each other by Ansible's name."""
    import ansible.module_utils  # only these two kinds need it

    folder = str(corpus_trees.MODULE_UTILS)
    if folder not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(folder)
    return importlib.import_module("ansible.module_utils.bench_storage.devices")


def _lsblk(text: str) -> dict[str, Any]:
    """Reads `lsblk --json --bytes --output` with provisioning's columns; each device once, by name."""
    devices = _storage_parts()
    try:
        roots = devices.parse_lsblk(text)
    except devices.StorageError as error:
        return {"refused": str(error)}
    return {
        "roots": [root.name for root in roots],
        "devices": {
            one.name: {"type": one.type, "size_bytes": one.size_bytes, "model": one.model, "read_only": one.read_only}
            | {"filesystem": one.filesystem, "on_it": [child.name for child in one.children]}
            for one in everything(roots).values()
        },
    }


def _wipefs(text: str) -> dict[str, Any]:
    """Reads `wipefs --no-act --json`."""
    devices = _storage_parts()
    return {"signatures": [[one["type"], one.get("label")] for one in devices.parse_wipefs(text)]}


KINDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "smartctl": _smartctl,
    "smartctl-scan": _scan,
    "ipmi-dcmi": _dcmi,
    "ipmi-sdr": _sdr,
    "ipmi-sel": _sel,
    "node-tree": corpus_trees.found_of,
    "iperf3": _iperf3,
    "perftest-bandwidth": _perftest_bandwidth,
    "perftest-latency": _perftest_latency,
    "fio": _fio,
    "redfish-bios": _redfish_bios,
    "nvme-health": _nvme_health,
    "redfish-inlet": _redfish_inlet,
    "lsblk": _lsblk,
    "wipefs": _wipefs,
}


def _object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError("it is no JSON object")
    return document


def case_of(name: str, kind: str, raw: Path, source: str, licence: str) -> dict[str, str]:
    """The case's files by name. Raises ValueError in one sentence."""
    if not NAME.fullmatch(name):
        raise ValueError(f"CASE={name!r}: use 3 to 61 small letters, digits and hyphens")
    if kind not in KINDS:
        raise ValueError(f"KIND={kind!r} is unknown; give one of {', '.join(KINDS)}")
    for key, value in (("SOURCE", source), ("LICENCE", licence)):
        if not value.strip():
            raise ValueError(f"{key} is empty: say where the text is from and under which licence others may use it")
    try:
        text = redacted(raw.read_text(encoding="utf-8"))
        found = KINDS[kind](text)
    except (OSError, ValueError, LookupError, TypeError, RecursionError, BenchError) as error:
        raise ValueError(f"RAW={raw}: {str(error)[:400]}; it is not taken as {kind}") from None
    about = About(kind, source, licence, composed=False, reviewed=NOT_YET)
    written = {"case.json": as_document(about), "expected.json": found}
    return {"raw": text} | {file: json.dumps(content, indent=1) + "\n" for file, content in written.items()}


def add(corpus: Path, name: str, files: dict[str, str]) -> Path:
    """Write the case whole or not at all. Raises ValueError where there is one of that name."""
    target = corpus / name
    if target.exists():
        raise ValueError(f"CASE={name}: {target} is there already; choose another name")
    corpus.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".new-", dir=corpus))
    try:
        for file, text in files.items():
            (made / file).write_text(text, encoding="utf-8")
        made.chmod(0o755)
        made.rename(target)
    except BaseException:
        with suppress(FileNotFoundError):
            shutil.rmtree(made)
        raise
    return target


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "", allow_abbrev=False)
    for name in ("case", "kind", "raw", "source", "licence"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--corpus", default=str(CORPUS))
    own = parser.parse_args()
    try:
        target = add(Path(own.corpus), own.case, case_of(own.case, own.kind, Path(own.raw), own.source, own.licence))
    except (ValueError, OSError) as error:
        print(f"contribute-corpus: {error}", file=sys.stderr)
        return 2
    print(
        f"{target}: look at raw for what identifies your site, compare expected.json with the tool's documentation, and say in"
    )
    print("case.json, `reviewed`, who of you did so and by which document")
    return 0


if __name__ == "__main__":
    sys.exit(main())
