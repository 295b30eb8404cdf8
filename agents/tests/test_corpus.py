"""Real outputs against what a person found in the tools' documentation, and the way by which a case joins them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import contribute_corpus
import corpus_trees
from contribute_corpus import CORPUS, KINDS, NOT_YET, about_of, add, case_of
from corpus_secrets import redacted, secrets_of
from daq_bench.bench_model.base.errors import BenchError

# CORPUS=DIR: more cases of the same form, that are kept elsewhere.
FOLDERS = [CORPUS, *(Path(one) for one in os.environ.get("CORPUS", "").split(":") if one)]
CASES = sorted(path.parent for folder in FOLDERS for path in folder.glob("*/case.json"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_every_real_output_gives_what_was_reviewed(case: Path) -> None:
    """And says where it is from, under which licence, and who looked; none holds what identifies a machine."""
    about = about_of(case)
    raw = (case / "raw").read_text(encoding="utf-8")
    assert all((about.kind, about.source, about.licence, about.reviewed)) and about.reviewed != NOT_YET
    assert about.composed is False, "a composed text belongs to the tests that composed it"
    assert secrets_of(raw) == []
    assert json.loads(json.dumps(KINDS[about.kind](raw))) == json.loads((case / "expected.json").read_text())


def test_no_folder_of_the_corpus_is_left_untested() -> None:
    """A case without case.json would be run by nothing."""
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} == {
        path.name for path in CASES if path.parent == CORPUS
    }


SERIAL, WWN, MAC, IP6 = "PHAC1234007B", "5000c500a1b2c3d4", "3c:ec:ef:12:34:56", "fe80::3eec:efff:fe12:3456"
SECRETS = (
    SERIAL,
    WWN,
    MAC,
    IP6,
    "10.0.5.17",
    "hunter2secret",
    "eui.0025385b91b1c0ff",
    "5876543210987654321",
    "daq07.example.org",
)
HOSTILE: dict[str, Any] = {
    "smartctl": {"exit_status": 0, "argv": ["smartctl", "-a", f"/dev/disk/by-id/nvme-X_{SERIAL.lower()}"]},
    "serial_number": SERIAL,
    "wwn": {"naa": 5, "oui": 3152, "id": 5876543210987654321},
    "logical_unit_id": f"0x{WWN}",
    "nvme_namespaces": [{"id": 1, "eui64": {"text": "eui.0025385b91b1c0ff"}}],
    "local": {"note": f"{SERIAL} at {MAC} and [{IP6}], 10.0.5.17", "url": "https://root:hunter2secret@10.0.5.17/"},
    "Hostname": "daq07.example.org",
    "temperature": {"current": 31},
    "power_on_time": {"hours": 4711},
}  # fmt: skip


def test_neither_serials_nor_addresses_nor_secrets_remain(tmp_path: Path) -> None:
    """Also where the same stands again: in a path, in other letters, in a sentence."""
    raw = tmp_path / "smart.json"
    raw.write_text(json.dumps(HOSTILE))
    files = case_of("a-drive", "smartctl", raw, "our server", "CC0-1.0")
    for text in files.values():
        assert not [secret for secret in SECRETS if secret.lower() in text.lower()]
    assert json.loads(files["raw"])["power_on_time"] == {"hours": 4711}
    assert json.loads(files["expected.json"])["fields"] == {"temperature_degc": 31.0, "power_on_hours": 4711}


HIDDEN = {
    "base64": base64.b64encode(SERIAL.encode()).decode(),
    "base64, further on": base64.b64encode(b"xx" + SERIAL.encode() + b"yyy").decode(),
    "hexadecimal": SERIAL.encode().hex().upper(),
    "a dump": SERIAL.encode().hex(" "),
    "swapped as ATA does": "".join(SERIAL[at : at + 2][::-1] for at in range(0, len(SERIAL), 2)),
    "a switch's MAC address": "3cec.ef12.3456",
    "a cloud's name": "ip-10-0-5-17",
    "a key": "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
}


@pytest.mark.parametrize("where", HIDDEN)
def test_neither_do_they_remain_in_other_forms(where: str) -> None:
    """A page as a dump, what a drive stores in swapped bytes, a log in base64."""
    clean = redacted(json.dumps({"serial_number": SERIAL, "odd": f"page {HIDDEN[where]} end", "count": 4711}))
    said = json.loads(clean)["odd"]
    assert "REMOVED" in said and HIDDEN[where] not in said
    assert json.loads(clean)["count"] == 4711
    # The rest around it in base64 tells at most three characters of it.
    left = said.replace("page ", "").replace(" end", "")
    assert not [1 for at in range(len(SERIAL) - 4) if SERIAL[at : at + 5] in left]


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (f'{{"sn": "{SERIAL}", "x": 1}}', SERIAL),  # as nvme-cli names it
        ('{"AssetTag": "A7", "x": "A7 is a model"}', '"A7"'),  # too short to be looked for everywhere
        (f'{{"{SERIAL}": {{"serial_number": "{SERIAL}"}}}}', SERIAL),  # as a key
        ('{"serial_number": "PHAC12\\u0033400", "x": "PHAC123400"}', "PHAC"),  # a letter as its number
        ('{"host": "daq07", "x": "daq07.example.org up"}', "example"),  # its domain
        ('NAME="sda" SERIAL="S6PXNX0T4123" SIZE="1T"\n', "S6PX"),  # lsblk -P
    ],
)
def test_nor_under_other_names(text: str, gone: str) -> None:
    assert gone not in redacted(text)


def test_a_text_that_is_no_json_is_cleaned_by_its_names_and_forms() -> None:
    """A time of day is no address, though it looks alike."""
    text = f"Serial Number:    {SERIAL}\nHostname = daq07.example.org\nUp since 10:22:33 at {MAC}, {IP6}, {SERIAL}\n"
    text += "IPMI timestamp: 11:22:33\n"
    clean = redacted(text)
    assert not [secret for secret in SECRETS if secret in clean]
    assert "10:22:33" in clean and "IPMI timestamp: 11:22:33" in clean


BIOS: dict[str, Any] = {
    "Attributes": {
        "MaxMemBusFreqMHz": "Auto",
        "SerialConsolePort": "Auto",
        "AssetTagProtection": "Unlocked",
        "SubNumaClustering": "Disabled",
        "SerialNumber": "MXQ1234ABC",
        "ServerName": "daq07",
        "ServerAssetTag": "",
        "WorkloadProfile": "GeneralPowerEfficientCompute",
        "ProcAMDBoost": "Disabled",
    }
}


def test_of_a_bios_the_identity_goes_and_the_options_stay() -> None:
    """Auto, as the value of SerialConsolePort, is no serial number, and Disabled no MAC of SubNumaClustering: many options have them."""
    clean = json.loads(redacted(json.dumps(BIOS)))["Attributes"]
    assert {name for name, value in clean.items() if value != BIOS["Attributes"][name]} == {
        "SerialNumber",
        "ServerName",
    }


def test_a_bios_says_what_the_role_would_set_and_what_it_would_refuse() -> None:
    """By the resource, and by a registry, whose offer decides."""
    found = KINDS["redfish-bios"](json.dumps(BIOS))
    assert found["power_profile"]["maximum-performance"] == {
        "in_force": {"WorkloadProfile": "HighPerformanceCompute(HPC)"}
    }
    assert found["turbo"]["on"] == {"in_force": {"ProcAMDBoost": "Enabled"}, "only_with": ["WorkloadProfile=Custom"]}
    assert found["cstates"]["off"] == {"unsupported": "the BIOS has no such attribute"}
    profile = {"AttributeName": "SysProfile", "CurrentValue": None, "DefaultValue": "PerfPerWattOptimizedDapc"}
    offer = [{"ValueName": "PerfPerWattOptimizedDapc"}, {"ValueName": "Custom"}]
    registry = {"RegistryEntries": {"Attributes": [profile | {"Value": offer}]}}
    found = KINDS["redfish-bios"](json.dumps(registry))
    assert found["power_profile"]["balanced"] == {"in_force": {"SysProfile": "PerfPerWattOptimizedDapc"}}
    assert "does not offer PerfOptimized" in found["power_profile"]["maximum-performance"]["unsupported"]


@pytest.mark.parametrize("text", ['{"Attributes": {}}', '{"Attributes": 3}', '{"Attributes": null}', "{}", "[]"])
def test_a_document_that_is_no_bios_is_refused(tmp_path: Path, text: str) -> None:
    """In one sentence."""
    raw = tmp_path / "bios.json"
    raw.write_text(text)
    with pytest.raises(ValueError, match="it is not taken as redfish-bios"):
        case_of("a-bios", "redfish-bios", raw, "our server", "CC0-1.0")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": 3}, "Expected `str`, got `int`"),
        ({"composed": "no"}, "Expected `bool`"),
        ({"licens": "MIT"}, "unknown field"),
    ],
)
def test_a_case_json_of_another_form_is_named(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    """With file and field."""
    whole = {"kind": "fio", "source": "us", "licence": "CC0-1.0", "composed": False, "reviewed": "fio(1)"}
    (tmp_path / "case.json").write_text(json.dumps(whole | change))
    with pytest.raises(BenchError, match=f"case.json.*{problem}"):
        about_of(tmp_path)


def test_a_number_within_another_number_is_no_secret() -> None:
    """Else a reading would change."""
    clean = json.loads(redacted(json.dumps({"serial_number": 123456, "count": 91234567, "list": [123456]})))
    assert clean == {"serial_number": "REMOVED-1", "count": 91234567, "list": ["REMOVED-1"]}


def test_one_value_becomes_one_word_and_twice_is_once() -> None:
    """So that a case still shows that two places agree."""
    clean = redacted(json.dumps({"serial_number": SERIAL, "again": SERIAL, "wwn": WWN}))
    document = json.loads(clean)
    assert document["serial_number"] == document["again"] != document["wwn"]
    assert redacted(clean) == clean


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "../x"}, r"CASE='\.\./x': use 3 to 61 small letters"),
        ({"kind": "smart"}, "KIND='smart' is unknown; give one of smartctl, "),
        ({"licence": " "}, "LICENCE is empty: say"),
        ({"source": ""}, "SOURCE is empty: say"),
        ({"kind": "iperf3"}, "it is not taken as iperf3"),
        ({"raw": Path("/nowhere")}, "RAW=/nowhere: .*No such file"),
    ],
)
def test_a_case_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    """Naming the argument."""
    raw = tmp_path / "smart.json"
    raw.write_text(json.dumps(HOSTILE))
    own: dict[str, Any] = {
        "name": "a-drive",
        "kind": "smartctl",
        "raw": raw,
        "source": "our server",
        "licence": "CC0-1.0",
    } | change
    with pytest.raises(ValueError, match=reason):
        case_of(**own)


INTAKE = {
    "@odata.type": "#ThermalMetrics.v1_0_0.ThermalMetrics",
    "TemperatureSummaryCelsius": {"Intake": {"Reading": 24.8}},
}


def test_redfish_documents_of_the_inlet_are_a_kind() -> None:
    assert KINDS["redfish-inlet"](json.dumps(INTAKE)) == {"inlets": [["Intake", 24.8]], "faults": []}
    with pytest.raises(ValueError, match=r"its @odata\.type is 'Power', not Thermal"):
        KINDS["redfish-inlet"](json.dumps(INTAKE | {"@odata.type": "#Power.v1_5_0.Power"}))


@pytest.mark.parametrize("text", ['{"error": "no route"}', '{"start": {"version": "ab"}, "error": "x"}'])
def test_only_what_iperf3_itself_said_is_a_refused_case(text: str) -> None:
    """Any other text with an error in it is no output of iperf3."""
    with pytest.raises(ValueError, match="iperf3: "):
        KINDS["iperf3"](text)


def test_a_case_is_added_whole_once_and_is_not_yet_reviewed(tmp_path: Path) -> None:
    """By the command; the second time nothing is changed."""
    raw, corpus = tmp_path / "smart.json", tmp_path / "corpus"
    raw.write_text(json.dumps(HOSTILE))
    command = [
        sys.executable, contribute_corpus.__file__, "--case=a-drive", "--kind=smartctl", f"--raw={raw}", "--source=us", "--licence=CC0-1.0",
        f"--corpus={corpus}",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = [subprocess.run(command, capture_output=True, text=True, env=environment, check=False) for _ in range(2)]
    assert [one.returncode for one in done] == [0, 2], done
    assert "is there already; choose another name" in done[1].stderr
    assert about_of(corpus / "a-drive").reviewed == NOT_YET
    assert [path.name for path in corpus.iterdir()] == ["a-drive"]
    with pytest.raises(OSError, match=r".*"):
        add(corpus, "broken", {"raw": "x", "no/such/folder": "y"})
    assert [path.name for path in corpus.iterdir()] == ["a-drive"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage\n",
        "Path: ../outside\nLines: 1\nx\nMode: 644\n",
        "Path: /etc/../../outside\nLines: 1\nx\nMode: 644\n",
        "Path: sys/a\nSymlinkTo: /etc/passwd\n",
        "Path: sys/a\nSymlinkTo: ../../../outside\n",
    ],
)
def test_a_tree_writes_nothing_outside_of_its_folder(tmp_path: Path, text: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(ValueError, match=r"it has a|it is no"):
        corpus_trees.unpack(text, root)
    assert list(tmp_path.iterdir()) == [root] and not [path for path in root.rglob("*") if path.is_file()]


def test_a_tree_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="no collector reads anything"):
        corpus_trees.found_of("Path: etc/hosts\nLines: 1\nx\nMode: 644\n")


@pytest.mark.parametrize(
    ("online", "siblings", "words"),
    [
        ("", "0", "names no CPU"),
        ("0", "x", "thread_siblings_list: 'x' is no list"),
        ("0-1", "0", "cpu1/topology does not tell"),
    ],
)
def test_a_tree_whose_cpus_cannot_be_is_refused(online: str, siblings: str, words: str) -> None:
    """And named by its own path, not by the folder that it was unpacked to."""
    cpu = "Path: sys/devices/system/cpu"
    text = f"{cpu}/online\nLines: 1\n{online}\n# ttar - - -\n{cpu}/cpu0/topology/thread_siblings_list\nLines: 1\n{siblings}\n"
    with pytest.raises(ValueError, match=words) as refused:
        corpus_trees.found_of(text)
    assert "/tmp" not in str(refused.value)


def test_the_serial_number_in_an_ibm_z_machines_cpuinfo_is_removed() -> None:
    """One value, one word; a version beside it stays."""
    line = "processor 1: version = 00,  identification = 279F25,  machine = 2817\n"
    assert redacted(line * 2) == line.replace("279F25", "REMOVED-1") * 2
