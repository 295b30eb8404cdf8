"""`python -m daq_bench.rig discover` and `doctor`: the inventory entry of a new server, and what is missing for a run."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.connection_entries import PLAIN
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.cli.arguments import Command, add_inventory, add_json, port, print_document
from daq_bench.rig.discovery import doctor
from daq_bench.rig.discovery.discover import Request, candidate_name, discover, written

PASSWORD_ENV = "BENCH_BMC_PASSWORD"


def add_server(command: argparse.ArgumentParser) -> None:
    """The arguments that say how a server without an entry is reached."""
    command.add_argument("--host", metavar="USER@SERVER", help="the server, by SSH; local: this machine")
    command.add_argument("--port", type=port, help="sshd's port (22)")
    command.add_argument("--key", type=Path, metavar="FILE", help="private key for SSH")
    command.add_argument("--ssh-args", metavar="TEXT", help="further options of ssh, which the entry keeps")
    command.add_argument("--name", help="the candidate's name (the server's)")


def _add_discover(command: argparse.ArgumentParser) -> None:
    add_server(command)
    command.add_argument("--bmc", metavar="USER@ADDRESS", help="its BMC, which is asked over the network")
    command.add_argument(
        "--bmc-password-env", default=PASSWORD_ENV, metavar="NAME", help=f"variable with its password ({PASSWORD_ENV})"
    )
    command.add_argument("--bmc-password-file", metavar="FILE", help="file with its password, for its owner alone")
    command.add_argument("--bmc-ca-file", metavar="FILE", help="certificate authority that vouches for it")
    command.add_argument(
        "--bmc-fingerprint", metavar="SHA256", help="of its own certificate, which nobody else need have signed"
    )
    command.add_argument("--bmc-insecure", action="store_true", help="do not verify its certificate")
    command.add_argument(
        "--bmc-vendor",
        metavar="NAME",
        help="whose names its BIOS attributes have, where the BMC does not tell a known maker",
    )
    command.add_argument("--bmc-redfish-system", metavar="NAME", help="which of several systems that it manages")
    command.add_argument("--bmc-redfish-port", type=port, metavar="PORT", help="TCP port of Redfish (443)")
    command.add_argument("--bmc-ipmi-port", type=port, metavar="PORT", help="UDP port of IPMI over LAN (623)")
    command.add_argument(
        "--bmc-cipher-suite", type=int, choices=range(18), metavar="0..17", help="of IPMI over LAN (17)"
    )
    command.add_argument(
        "--out", "--output", type=Path, metavar="FILE", help="a new file for the entry, instead of standard output"
    )


def bmc_block(options: argparse.Namespace) -> dict[str, Any]:
    """`bench_candidate.bmc` as the options say. Raises BenchError for an invalid address or user."""
    if not options.bmc:
        return {}
    user, _, address = options.bmc.rpartition("@")
    if not PLAIN["ansible_host"].fullmatch(address) or not PLAIN["ansible_user"].fullmatch(user):
        raise BenchError(f"{typed('--bmc', repr(options.bmc))} is no user@address: give both, and no port or password")
    asked = {
        "ipmi_port": options.bmc_ipmi_port,
        "redfish_port": options.bmc_redfish_port,
        "redfish_ca_file": options.bmc_ca_file,
        "redfish_fingerprint": options.bmc_fingerprint,
        "redfish_system": options.bmc_redfish_system,
        "vendor": options.bmc_vendor,
        "insecure": options.bmc_insecure or None,
        "password_file": options.bmc_password_file,
        "cipher_suite": options.bmc_cipher_suite,
    }
    block = {"address": address, "user": user, "password_env": options.bmc_password_env}
    return block | {key: value for key, value in asked.items() if value is not None}


def run_discover(options: argparse.Namespace) -> int:
    """Prints the entry, or writes it into a new file."""
    if options.out is not None and options.out.exists():
        raise BenchError(f"{options.out} is there already and was not touched: choose another {typed('--out')}")
    request = Request(
        options.host or "", options.name or "", options.port, options.key, options.ssh_args or "", bmc_block(options)
    )
    text, left_out = discover(request, Layout())
    if left_out:
        print(f"{typed('--bmc', options.bmc)} is left out: {printable(left_out)}", file=sys.stderr)
    if options.out is None:
        sys.stdout.write(text)
        return 0
    written(text, options.out)
    words = shlex.join(
        ["daq-bench", "validate", "--candidate", candidate_name(request), "--inventory", str(options.out)]
    )
    print(f"{options.out} is written; next: {words}", file=sys.stderr)
    return 0


def _add_doctor(command: argparse.ArgumentParser) -> None:
    words = "host of the inventory; left out: the control node alone"
    command.add_argument("candidate", nargs="?", default=argparse.SUPPRESS, help=words)
    command.add_argument("--candidate", metavar="CANDIDATE", help="the same, as for other commands")
    command.add_argument("--all", action="store_true", help="also what is well, a line each")
    add_inventory(command)
    add_json(command, "the findings (where, subject, found, remedy, ok)")


def run_doctor(options: argparse.Namespace) -> int:
    """0: nothing is missing; 1: something is, and each line of it has the remedy."""
    layout = Layout()
    findings = list(doctor.control_node(layout))
    if options.candidate:
        inventory = options.inventory or layout.inventory / "lab.yml"
        findings += doctor.candidate(layout, inventory, options.candidate)
    print_document(options, [{**asdict(one), "ok": one.ok} for one in findings])
    if not options.json:
        lines = [str(one) for one in findings] if options.all else doctor.in_short(findings)
        print("\n".join(map(printable, lines)))
    return 0 if all(one.ok for one in findings) else 1


COMMANDS = {
    "discover": Command("look at a server and propose its inventory entry", _add_discover, run_discover),
    "doctor": Command("say what is missing on the control node and on a candidate", _add_doctor, run_doctor),
}
