"""A run bundle goes to vendors. It may say of the way to a candidate and to its BMC nothing but that there is one.

The way itself stays in the inventory: Ansible and the rig take it from there, also while a run goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.candidate.connection import VARIABLES, variables_of

WITHHELD = "withheld"
# Keys that say what measures, not how it is reached. All other keys of `bmc` are withheld, those that are yet to come among them.
TOLD = ("vendor", "in_band", "redfish_system", "insecure", "cipher_suite")
# An entry with an address needs these three; their values say nothing.
INSTEAD = {"address": WITHHELD, "user": WITHHELD, "password_env": WITHHELD.upper()}
SECRET_ARGUMENTS = ("--influx-",)
PLACES = ("address", "password_file", "redfish_ca_file")  # values of `bmc` that no other word of a log means
PORTS = ("ipmi_port", "redfish_port")
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "local")
SHORTEST = 4


def disclosed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the inventory entry (`bench_candidate`) as a bundle holds it; it is valid, as what was given is."""
    bmc = entry.get("bmc")
    if bmc is None:
        return dict(entry)
    kept = {key: value for key, value in bmc.items() if key in TOLD}
    return {**entry, "bmc": {**kept, **{key: value for key, value in INSTEAD.items() if key in bmc}}}


def disclosed_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Ansible's extra variables as a bundle holds them."""

    def told(name: str, value: Any) -> Any:
        if name == "bench_candidate":
            return disclosed(value)
        return [_argument(one) for one in value] if name == "bench_agent_arguments" else value

    return {name: told(name, value) for name, value in variables.items()}


def _argument(text: str) -> str:
    return f"{text.partition('=')[0]}={WITHHELD}" if text.startswith(SECRET_ARGUMENTS) and "=" in text else text


def secrets_of(inventory: Path, candidate: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the words that lead to the candidate or its BMC, the longest first, for `without`."""
    try:
        found = variables_of(inventory, candidate, VARIABLES)
    except BenchError:  # whoever connects says so
        found = {}
    host, user = str(found.get("ansible_host", "")), str(found.get("ansible_user") or "")
    keys = [str(found.get(name) or "") for name in ("ansible_ssh_private_key_file", "ansible_private_key_file")]
    bmc = [str(entry.get("bmc", {}).get(name, "")) for name in PLACES]
    ports = [found.get("ansible_port"), *(entry.get("bmc", {}).get(name) for name in PORTS)]
    words = {host, f"{user}@{host}" if user and host else "", *keys, *bmc, *(f"port {one}" for one in ports if one)}
    told = {one for one in words if len(one) >= SHORTEST and one not in LOOPBACK and one != candidate}
    return tuple(sorted(told, key=len, reverse=True))


def without(text: str, secrets: Iterable[str]) -> str:
    """Returns the text, those words withheld."""
    for one in secrets:
        text = text.replace(one, f"({WITHHELD})")
    return text
