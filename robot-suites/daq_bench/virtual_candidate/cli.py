"""Command line: `python -m daq_bench.virtual_candidate up | down | status | hazard ...`. Exit status 0; 2: a message; 130: Ctrl-C."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.candidate_kit.sizes import parse_size
from daq_bench.virtual_candidate import instance
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.hardware import DEFAULT_VENDOR, FANS
from daq_bench.virtual_candidate.hazards import Hazards
from daq_bench.virtual_candidate.instance import DEFAULT_BASE, DEFAULT_NAME, Instance, Ports
from daq_bench.virtual_candidate.vendors import VENDORS


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog=f"{called} virtual"
        if (called := os.environ.get("DAQ_BENCH_NAME"))
        else "python -m daq_bench.virtual_candidate",
        description=__doc__,
    )
    top.add_argument("--name", default=DEFAULT_NAME, help=f"which virtual candidate ({DEFAULT_NAME})")
    top.add_argument(
        "--base",
        type=Path,
        default=DEFAULT_BASE,
        metavar="DIRECTORY",
        help="where state and caches are (build/virtual)",
    )
    commands = top.add_subparsers(dest="command", required=True)
    _add_up(commands.add_parser("up", help="build what is missing and start it; nothing when it is up"))
    commands.add_parser("down", help="end it and remove everything but the caches")
    commands.add_parser("status", help="print what is there and what is in force, as JSON")
    _add_hazards(commands.add_parser("hazard", help="cause a fault, or release it"))
    return top


def _add_up(up: argparse.ArgumentParser) -> None:
    ports = Ports()
    up.add_argument("--ssh-port", type=int, default=ports.ssh, help=f"({ports.ssh})")
    up.add_argument("--ipmi-port", type=int, default=ports.ipmi, help=f"UDP ({ports.ipmi})")
    up.add_argument("--redfish-port", type=int, default=ports.redfish, help=f"({ports.redfish})")
    up.add_argument(
        "--system-port", type=int, default=ports.system, help=f"between the guest and its BMC ({ports.system})"
    )
    up.add_argument("--vendor", choices=list(VENDORS), default=DEFAULT_VENDOR, help=f"the BMC's ({DEFAULT_VENDOR})")
    up.add_argument(
        "--memory", type=int, default=Instance().memory_mib, metavar="MIB", help=f"({Instance().memory_mib})"
    )
    up.add_argument("--drive-size", default="2GB", metavar="SIZE", help="of each drive, such as 2GB or 8GiB (2GB)")
    up.add_argument(
        "--drives-directory", type=Path, metavar="DIRECTORY", help="for the drives' contents, such as /dev/shm"
    )
    up.add_argument(
        "--wired-to",
        metavar="NAME",
        help="give it a second interface, eth1, with a cable to that of the candidate NAME",
    )


def _add_hazards(hazard: argparse.ArgumentParser) -> None:
    kinds = hazard.add_subparsers(dest="hazard", required=True)

    def add(name: str, text: str, *names: str, value: str | None = None) -> None:
        kind = kinds.add_parser(name, help=text)
        for positional in names:
            kind.add_argument(positional)
        group = kind.add_mutually_exclusive_group(required=value is not None)
        if value:
            group.add_argument(f"--{value}", metavar="VALUE")
        group.add_argument("--release", action="store_true", help="end the hazard")

    add(
        "throttle", "hold a drive to a bandwidth (such as 50MB, per second), critical warning set", "serial", value="to"
    )
    add("write-errors", "fail every write to a drive", "serial")
    add("pull", "pull a drive out of its slot", "serial")
    add("swap", "put another drive, with another serial, into a drive's slot", "serial", value="by")
    add("inlet", "raise the inlet temperature", value="celsius")
    add("bay", "raise the temperature of a drive's bay", "serial", value="celsius")
    add("fan", f"stop a fan ({', '.join(fan.name for fan in FANS)})", "fan")
    add("power", "cut the power")
    kinds.add_parser("release-all", help="end every hazard but a power cut")


def main(arguments: list[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    # SIGTERM makes a start clean up after itself, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        return _COMMANDS[args.command](args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _say(text: str) -> None:
    print(f"virtual candidate: {text}", file=sys.stderr, flush=True)


def _up(args: argparse.Namespace) -> int:
    _require_ports(args.ssh_port, args.ipmi_port, args.redfish_port, args.system_port)
    wanted = Instance(
        base=args.base.resolve(),
        name=_name(args.name),
        ports=Ports(args.ssh_port, args.ipmi_port, args.redfish_port, args.system_port),
        vendor=args.vendor,
        memory_mib=_at_least(args.memory, 1024, "--memory"),
        drive_bytes=_at_least(_size(args.drive_size, "--drive-size"), 10**8, "--drive-size"),
        drives_directory=args.drives_directory.resolve() if args.drives_directory else None,
        wired_to=_other(args.wired_to, args.name) if args.wired_to else None,
    )
    started = VirtualCandidate(wanted).up(_say)
    ports = wanted.ports
    _say(
        f"{'is up' if started else 'was up already'}: ssh port {ports.ssh}, IPMI port {ports.ipmi}, "
        f"https://127.0.0.1:{ports.redfish}, all on 127.0.0.1; keys in {wanted.ssh}, BMC's password in {wanted.password_file}"
    )
    return 0


def _down(args: argparse.Namespace) -> int:
    ended = VirtualCandidate(_known(args)).down()
    _say("is down; only the caches stay" if ended else "was not up")
    return 0


def _status(args: argparse.Namespace) -> int:
    print(json.dumps(VirtualCandidate(_known(args)).status(), indent=2))
    return 0


def _hazard(args: argparse.Namespace) -> int:
    found = instance.load(_known(args).directory)
    if found is None:
        raise BenchError(f"no virtual candidate {args.name!r} is up. Start it with `make virtual-up`")
    hazards = Hazards(found)
    for action in _hazard_action(args, hazards):
        action()
    print(json.dumps(hazards.in_force(), indent=2))
    return 0


def _hazard_action(args: argparse.Namespace, hazards: Hazards) -> list[Callable[[], None]]:
    """The actions that the words on the command line ask for, as functions to call."""
    kind = args.hazard
    if kind == "release-all":
        return [hazards.release_all]
    starts: dict[str, Callable[[], None]] = {
        "throttle": lambda: hazards.throttle(args.serial, _size(args.to, "--to")),
        "write-errors": lambda: hazards.fail_writes(args.serial),
        "pull": lambda: hazards.pull(args.serial),
        "swap": lambda: hazards.swap(args.serial, args.by),
        "inlet": lambda: hazards.raise_inlet(_celsius(args.celsius)),
        "bay": lambda: hazards.raise_bay(args.serial, _celsius(args.celsius)),
        "fan": lambda: hazards.stop_fan(args.fan),
        "power": hazards.cut_power,
    }
    releases: dict[str, Callable[[], None]] = {
        "throttle": lambda: hazards.release_throttle(args.serial),
        "write-errors": lambda: hazards.release_writes(args.serial),
        "pull": lambda: hazards.put_back(args.serial),
        "swap": lambda: hazards.swap_back(args.serial),
        "inlet": hazards.release_inlet,
        "bay": lambda: hazards.release_bay(args.serial),
        "fan": lambda: hazards.release_fan(args.fan),
        "power": hazards.restore_power,
    }
    return [(releases if args.release else starts)[kind]]


def _known(args: argparse.Namespace) -> Instance:
    """The instance of that name as started, or as it would be."""
    wanted = Instance(base=args.base.resolve(), name=_name(args.name))
    return instance.load(wanted.directory) or wanted


def _name(name: str, option: str = "--name") -> str:
    if not name.replace("-", "").isalnum() or name in ("cache", "ssh", "tls"):
        raise BenchError(f"{option} {name!r}: use letters, digits and hyphens; cache, ssh and tls are taken")
    return name


def _other(name: str, own: str) -> str:
    if _name(name, "--wired-to") == own:
        raise BenchError(f"--wired-to {name}: that is its own name. Give the name of another virtual candidate")
    return name


def _size(text: str, option: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise BenchError(f"{option} {text}: {error}") from None


def _celsius(text: str) -> int:
    if not text.isdecimal():
        raise BenchError(f"--celsius {text}: give whole degrees Celsius, such as 45")
    return int(text)


def _at_least(value: int, least: int, option: str) -> int:
    if value < least:
        raise BenchError(f"{option}: {value} is too small. Give at least {least}")
    return value


def _require_ports(*ports: int) -> None:
    if len(set(ports)) != len(ports) or not all(0 < port < 65536 for port in ports):
        raise BenchError(f"the ports {', '.join(map(str, ports))} must be four different ones from 1 to 65535")


_COMMANDS = {"up": _up, "down": _down, "status": _status, "hazard": _hazard}
