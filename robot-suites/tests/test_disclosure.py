"""A bundle goes to vendors: it says nothing of the way to the candidate and to its BMC. An inventory full of canaries shows it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout, Profiles, Request, load_profiles
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.disclosure import disclosed, secrets_of, without
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.candidate.provision import provisioner
from daq_bench.rig.run.facilities import INVENTORY_VARIABLE, with_bmc
from daq_bench.rig.run.record import copy_profiles

LAYOUT = Layout()
BMC = {
    "address": "canary-bmc.mgmt.example", "user": "canary-admin", "password_env": "CANARY_PASSWORD",
    "password_file": "/home/op/.canary-password", "redfish_ca_file": "/home/op/canary-ca.pem", "ipmi_port": 47623, "redfish_port": 47443,
    "cipher_suite": 3, "vendor": "dell", "in_band": False,
}  # fmt: skip
WAY = {
    "ansible_connection": "ssh", "ansible_host": "canary-host.lab.example", "ansible_port": 47022, "ansible_user": "canary-login",
    "ansible_ssh_private_key_file": "/home/op/.ssh/canary_key", "ansible_become_password": "canary-sudo",
    "ansible_ssh_common_args": "-o ProxyJump=canary-jump.example",
}  # fmt: skip
CANARIES = ("canary", "CANARY", "47623", "47443", "47022")


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profiles:
    monkeypatch.setenv("CANARY_PASSWORD", "canary-calvin")
    lab = YAML(typ="safe").load(LAYOUT.inventory / "lab.yml")
    hosts = lab["all"]["children"]["candidates"]["hosts"]
    entry = hosts["this-machine"]["bench_candidate"]
    lab["all"]["children"]["candidates"]["hosts"] = {"this-machine": {**WAY, "bench_candidate": {**entry, "bmc": BMC}}}
    YAML().dump(lab, tmp_path / "lab.yml")
    return load_profiles(Request(inventory=tmp_path / "lab.yml"), LAYOUT)


class Playbook:
    """Stands for ansible-playbook: keeps the variables that it gets, prints its way as ssh does when it fails."""

    def __init__(self, status: int) -> None:
        self.status, self.variables, self.mode, self.file = status, "", 0, Path()

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        (option,) = [str(word) for word in argv if str(word).startswith("--extra-vars=@")]
        self.file = Path(option.partition("@")[2])
        self.variables, self.mode = self.file.read_text(encoding="utf-8"), self.file.stat().st_mode & 0o777
        said = (
            f"fatal: [this-machine]: UNREACHABLE! {WAY['ansible_user']}@{WAY['ansible_host']}: Permission denied; {BMC['address']} port "
            f"47443: {BMC['redfish_ca_file']} and {BMC['password_file']} cannot be read; no key {WAY['ansible_ssh_private_key_file']}\n"
        )
        return Completed(("ansible-playbook",), self.status, said, "")


def found_in(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 5
    return [f"{file.name}: {one}" for file in files for one in CANARIES if one.encode() in file.read_bytes()]


def test_no_byte_of_a_bundle_is_of_the_way_and_the_bundle_is_still_read(profiles: Profiles, tmp_path: Path) -> None:
    candidate = profiles.candidate
    bundle = Bundle.create(tmp_path / "runs", candidate.name, "", "dune-snb")
    copy_profiles(bundle, profiles)
    secrets = secrets_of(profiles.inventory_file, candidate.name, candidate.document)
    bundle.told = lambda text: without(text, secrets)
    machine = LocalMachine(LAYOUT)
    made = provisioner(
        LAYOUT, candidate, profiles.inventory_file, machine, machine.places(candidate.name, bundle.path), bundle.path / "facts",
        Path("/srv"), bundle.id,
    )  # fmt: skip
    for status in (0, 4):
        playbook = Playbook(status)
        try:
            replace(made, shell=playbook).run(
                "provision", bench_agent_arguments=["--influx-url=http://canary:1", "--period=1"]
            )
        except BenchError as error:
            assert "canary-login@canary-host.lab.example" in str(error)  # whoever runs the bench reads all of it
            bundle.event("error", "clean-up", str(error))
        given = json.loads(playbook.variables)
        assert given["bench_candidate"]["bmc"]["address"] == {"__ansible_unsafe": "canary-bmc.mgmt.example"}
        assert given["bench_candidate"]["bmc"]["redfish_port"] == 47443
        assert playbook.mode == 0o600 and not playbook.file.exists()
    assert (
        "UNREACHABLE! (withheld): Permission denied; (withheld) (withheld): (withheld) and" in bundle.events()[0].text
    )
    assert found_in(bundle.path) == []
    stored = json.loads((bundle.path / "facts" / "ansible-provision-tuning-variables.json").read_text(encoding="utf-8"))
    assert stored["bench_candidate"]["bmc"]["address"] == {"__ansible_unsafe": "withheld"}
    assert [one["__ansible_unsafe"] for one in stored["bench_agent_arguments"]] == [
        "--influx-url=withheld",
        "--period=1",
    ]
    read = load_candidate(bundle.path / "profiles" / "lab.yml", candidate.name)
    assert read.document == disclosed(candidate.document)
    assert read.document["bmc"] == {
        "vendor": "dell", "in_band": False, "cipher_suite": 3, "address": "withheld", "user": "withheld", "password_env": "WITHHELD",
    }  # fmt: skip
    assert {**read.document, "bmc": 0} == {**candidate.document, "bmc": 0}


def test_what_searches_for_canaries_finds_them(profiles: Profiles, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    for number in range(6):
        shutil.copy(profiles.inventory_file, tmp_path / "all" / str(number))
    assert len(found_in(tmp_path / "all")) == 6 * len(CANARIES)


def test_a_run_under_way_takes_the_bmc_from_the_inventory(
    profiles: Profiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Bundle.create(tmp_path / "runs", "this-machine", "", "dune-snb")
    copy_profiles(bundle, profiles)
    stored = load_candidate(bundle.path / "profiles" / "lab.yml", "this-machine")
    monkeypatch.setenv(INVENTORY_VARIABLE, str(profiles.inventory_file))
    assert with_bmc(stored).document == profiles.candidate.document
    without_bmc = replace(stored, document={key: value for key, value in stored.document.items() if key != "bmc"})
    assert with_bmc(without_bmc) is without_bmc


@pytest.mark.parametrize("bmc", [None, {}, {"vendor": "hpe"}, {"vendor": "hpe", "something_new": "canary"}])
def test_an_entry_without_an_address_gets_none(bmc: dict[str, str] | None) -> None:
    entry = {"description": "d"} if bmc is None else {"description": "d", "bmc": bmc}
    expected = entry if bmc is None else {**entry, "bmc": {key: one for key, one in bmc.items() if key == "vendor"}}
    assert disclosed(entry) == expected


def test_common_words_stay(tmp_path: Path) -> None:
    """A loopback address, a short name and the candidate's own name lead nowhere, and stand in every log."""
    lab = tmp_path / "lab.yml"
    hosts = "all: {children: {candidates: {hosts: {server: {ansible_host: %s, ansible_user: root}}}}}"
    for host, told in (("127.0.0.1", ("root@127.0.0.1",)), ("server", ("root@server",)), ("pc1", ("root@pc1",))):
        lab.write_text(hosts % host, encoding="utf-8")
        assert secrets_of(lab, "server", {"bmc": {"address": "::1"}}) == told
    assert without("a root@pc1: b", ("root@pc1",)) == "a (withheld): b"
