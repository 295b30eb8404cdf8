"""Command line: `run`, `replay`, `status`.

Promise: bad arguments give one line naming the argument and end with 2, before anything is written; `run`
prints "ready" on stdout once it samples, ends on SIGTERM or SIGINT, and then with 0; `replay` ends with 0
only when nothing is left.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import urllib.parse
from pathlib import Path
from typing import Any, NoReturn

from daq_bench.candidate_kit.influx_answers import is_sendable
from daq_bench.candidate_kit.sizes import size_with_unit
from daq_bench.telemetry_agent import __version__
from daq_bench.telemetry_agent.agent import SUMMARY_PERIOD_S, Agent, Settings
from daq_bench.telemetry_agent.base.files import replace_json
from daq_bench.telemetry_agent.base.point import PointError, check_tag
from daq_bench.telemetry_agent.collectors.choice import Choice
from daq_bench.telemetry_agent.collectors.ipmi import PASSWORD_VARIABLE, lan_interface
from daq_bench.telemetry_agent.delivery.delivery import Delivery
from daq_bench.telemetry_agent.delivery.influx import TOKEN_VARIABLE, Destination, InfluxWriter
from daq_bench.telemetry_agent.devices.redfish_service import Address
from daq_bench.telemetry_agent.spool.cursor import CURSOR_FILE, Cursor, read_counts
from daq_bench.telemetry_agent.spool.recovery import recover
from daq_bench.telemetry_agent.spool.room import Limits
from daq_bench.telemetry_agent.spool.spool import POINTS_FILE, Spool, SpoolBusy, lock_spool
from daq_bench.telemetry_agent.spool.tally import Ledger
from daq_bench.telemetry_agent.summary import REPLAY_FILE, after_replay, load_summary, point_counts

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PERIOD_S_MIN, PERIOD_S_MAX = 0.1, 3600.0
SHA256_DIGITS = 64
SPOOL_BYTES_MIN = 2 * 2**20


class UsageError(Exception):
    """The arguments do not make sense; the text names which and what to do."""


class _Parser(argparse.ArgumentParser):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """One line instead of the usage text."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """All commands and options."""
    top = _Parser(prog="telemetry_agent", description="Sample this machine's sensors for a bench run.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True, metavar="run|replay|status")
    run = commands.add_parser("run", help="sample until SIGTERM or SIGINT")
    _add_spool(run)
    _add_influx(run)
    run.add_argument("--no-influx", action="store_true", help="spool only; `replay` can deliver later")
    run.add_argument("--period", type=_seconds, default=1.0, metavar="SECONDS", help="of the fast collectors (1)")
    run.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE", help="added to every point; repeatable")
    run.add_argument(
        "--spool-max",
        type=_size,
        default=Limits().max_bytes,
        metavar="SIZE",
        help="bound of points.lp on the disk, e.g. 8GiB (8GiB)",
    )
    run.add_argument(
        "--spool-keep-free",
        type=_size_or_zero,
        default=Limits().keep_free_bytes,
        metavar="SIZE",
        help="space left free on the spool's disk, e.g. 64MiB (64MiB)",
    )
    run.add_argument("--workload-file", type=Path, metavar="PATH", help="daqwriter's line-protocol file to pass on")
    _add_choice(run)
    replay = commands.add_parser("replay", help="deliver what InfluxDB has not stored yet")
    _add_spool(replay)
    _add_influx(replay)
    _add_spool(commands.add_parser("status", help="print the accounting of a spool as JSON"))
    return top


def _add_spool(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--spool-dir", type=Path, required=True, metavar="DIR", help="holds points.lp and its accounts"
    )


def _add_influx(command: argparse.ArgumentParser) -> None:
    command.add_argument("--influx-url", metavar="URL", help="e.g. http://127.0.0.1:8086")
    command.add_argument("--database", metavar="NAME", help="database (1.x) or bucket (2.x)")
    command.add_argument("--org", default="", metavar="NAME", help=f"organisation, needed with {TOKEN_VARIABLE}")
    command.add_argument(
        "--drain-seconds",
        type=_seconds_or_zero,
        default=10.0,
        metavar="S",
        help="limit on the last deliveries (10)",
    )


def _add_choice(command: argparse.ArgumentParser) -> None:
    for option, text in (("--collectors", "run these only"), ("--without-collectors", "run all but these")):
        command.add_argument(option, type=_names, default=(), metavar="NAME[,NAME]", help=text)
    command.add_argument("--instance", default="", metavar="NAME", help="tells two agents of one run apart")
    command.add_argument("--ipmi-lan", metavar="HOST", help=f"BMC to read over LAN; password in {PASSWORD_VARIABLE}")
    command.add_argument("--ipmi-port", type=_port, metavar="N", help="UDP port (623)")
    command.add_argument("--ipmi-user", metavar="NAME", help="user of the BMC")
    command.add_argument("--ipmi-cipher-suite", type=_cipher_suite, metavar="N", help="0 to 17 (17)")
    command.add_argument("--redfish-port", type=_port, metavar="N", help="read the same BMC's Redfish service too")
    command.add_argument("--redfish-ca-file", default="", metavar="PATH", help="certificate that vouches for it")
    command.add_argument("--redfish-fingerprint", type=_sha256, metavar="SHA256", help="of its own certificate")
    command.add_argument("--redfish-system", default="", metavar="NAME", help="which of several systems it manages")
    command.add_argument("--redfish-insecure", action="store_true", help="do not check its certificate")


def _sha256(text: str) -> str:
    digits = text.replace(":", "").lower()
    if len(digits) != SHA256_DIGITS or set(digits) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError(f"{text!r} is no SHA-256 in hexadecimal digits")
    return digits


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _integer(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {low} to {high}")
    return int(text)


def _port(text: str) -> int:
    return _integer(text, 1, 65535)


def _cipher_suite(text: str) -> int:
    return _integer(text, 0, 17)


def choice_of(arguments: argparse.Namespace) -> Choice:
    """Returns the collectors to run; checks them before anything is written."""
    lan: tuple[str, ...] = ()
    if arguments.ipmi_lan:
        if not arguments.ipmi_user:
            raise UsageError("--ipmi-user is missing: --ipmi-lan needs a user of the BMC")
        if not os.environ.get(PASSWORD_VARIABLE):
            raise UsageError(
                f"the environment variable {PASSWORD_VARIABLE} is not set: --ipmi-lan needs the password in it"
            )
        suite = 17 if arguments.ipmi_cipher_suite is None else arguments.ipmi_cipher_suite
        lan = lan_interface(arguments.ipmi_lan, arguments.ipmi_port or 623, arguments.ipmi_user, suite)
    elif any(
        (arguments.ipmi_port, arguments.ipmi_user, arguments.ipmi_cipher_suite is not None, arguments.redfish_port)
    ):
        raise UsageError(
            "--ipmi-lan is missing: --ipmi-port, --ipmi-user, --ipmi-cipher-suite and --redfish-port are about it"
        )
    choice = Choice(arguments.collectors, arguments.without_collectors, lan, _redfish_of(arguments))
    try:
        choice.collectors(arguments.period)
    except ValueError as error:
        raise UsageError(f"--collectors, --without-collectors: {error}") from None
    return choice


def _redfish_of(arguments: argparse.Namespace) -> Address | None:
    if not arguments.redfish_port:
        if any(
            (
                arguments.redfish_ca_file,
                arguments.redfish_fingerprint,
                arguments.redfish_system,
                arguments.redfish_insecure,
            )
        ):
            raise UsageError(
                "--redfish-port is missing: --redfish-ca-file, --redfish-fingerprint, --redfish-system and --redfish-insecure are about it"
            )
        return None
    return Address(
        arguments.ipmi_lan,
        arguments.redfish_port,
        arguments.ipmi_user,
        arguments.redfish_ca_file,
        arguments.redfish_insecure,
        arguments.redfish_fingerprint or "",
        arguments.redfish_system,
    )


def _number(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text} s is outside {low:g} to {high:g} s")
    return value


def _size_or_zero(text: str) -> int:
    try:
        return size_with_unit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _size(text: str) -> int:
    size = _size_or_zero(text)
    if size < SPOOL_BYTES_MIN:
        raise argparse.ArgumentTypeError(f"{text} is less than {SPOOL_BYTES_MIN // 2**20}MiB, which thinning needs")
    return size


def _seconds(text: str) -> float:
    return _number(text, PERIOD_S_MIN, PERIOD_S_MAX)


def _seconds_or_zero(text: str) -> float:
    return _number(text, 0.0, PERIOD_S_MAX)


def parse_tags(pairs: list[str]) -> dict[str, str]:
    """`--tag` options as a mapping."""
    tags: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--tag {pair!r}: expected KEY=VALUE")
        if key in tags:
            raise UsageError(f"--tag {key} is given twice")
        try:
            check_tag(key, value)
        except PointError as error:
            raise UsageError(f"--tag {pair!r}: {error}") from None
        tags[key] = value
    return tags


def _instance(name: str) -> str:
    try:
        check_tag("instance", name or "unnamed")
    except PointError as error:
        raise UsageError(f"--instance {name!r}: {error}") from None
    return name


def destination(arguments: argparse.Namespace) -> Destination:
    """Says where to deliver, checked as far as possible without talking to it."""
    url, database = arguments.influx_url, arguments.database
    if not url or not database:
        missing = "--influx-url" if not url else "--database"
        raise UsageError(f"{missing} is missing" + (" (or give --no-influx)" if arguments.command == "run" else ""))
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number
        usable = False
    if not usable or parts.query or parts.fragment:
        raise UsageError(f"--influx-url {url!r}: expected http://HOST:PORT")
    if parts.username or parts.password:
        raise UsageError(f"--influx-url must not hold credentials: put the token into {TOKEN_VARIABLE}")
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not is_sendable(token):
        raise UsageError(f"{TOKEN_VARIABLE} holds a line end or another control character: set it to the token alone")
    if token and not arguments.org:
        raise UsageError(f"--org is missing: {TOKEN_VARIABLE} is set, so /api/v2/write is used (1.8 takes any --org)")
    return Destination(url, database, arguments.org, token)


def _stop_signal() -> threading.Event:
    """Set by the first SIGTERM or SIGINT, which must be blocked in every thread.

    Not sigtimedwait: a process that stood still (a suspended machine, a debugger) for longer than its timeout gets an
    answer from CPython that no signal stands behind, and the agent would end."""
    stopped = threading.Event()

    def wait() -> None:
        signal.sigwait(STOP_SIGNALS)
        stopped.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    return stopped


def run_command(arguments: argparse.Namespace) -> int:
    """Sample until told to stop."""
    if arguments.no_influx and (arguments.influx_url or arguments.database):
        raise UsageError("--no-influx contradicts --influx-url and --database")
    settings = Settings(
        spool_dir=arguments.spool_dir,
        period_s=arguments.period,
        tags=parse_tags(arguments.tag),
        destination=None if arguments.no_influx else destination(arguments),
        workload_file=arguments.workload_file,
        drain_s=arguments.drain_seconds,
        limits=Limits(arguments.spool_max, arguments.spool_keep_free),
        choice=choice_of(arguments),
        instance=_instance(arguments.instance),
    )
    # Blocked here and in every thread, fetched below: no handler ever runs in the middle of something.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    agent = Agent(settings)
    agent.start()
    print("ready", flush=True)
    stopped = _stop_signal()
    while not stopped.wait(SUMMARY_PERIOD_S):
        agent.refresh_summary()
    agent.finish()
    return EXIT_OK


def replay_command(arguments: argparse.Namespace) -> int:
    """Deliver the rest of a spool whose agent is gone."""
    target = destination(arguments)
    directory: Path = arguments.spool_dir
    _demand_spool(directory)
    old = load_summary(directory, REPLAY_FILE) or load_summary(directory)
    spool = Spool(directory)
    spool.close()
    cursor = Cursor(directory, spool.size_bytes, spool.recovery.offset_points)
    delivery = Delivery(spool.path, cursor, InfluxWriter(target), lambda: spool.size_bytes)
    delivery.drain(arguments.drain_seconds)
    cursor.close()
    summary = after_replay(old, spool.ledger, delivery, target.url, target.database)
    replace_json(directory / REPLAY_FILE, summary, durable=True)
    spool.release()
    print(json.dumps(summary["points"]))
    if summary["points"]["undelivered"]:
        error = delivery.outages.last_error
        print(
            f"telemetry_agent: error: {summary['points']['undelivered']} points left: {error}",
            file=sys.stderr,
        )
        return EXIT_FAILED
    return EXIT_OK


def status_command(arguments: argparse.Namespace) -> int:
    """Print what is known about a spool; changes nothing."""
    directory: Path = arguments.spool_dir
    _demand_spool(directory)
    try:
        os.close(lock_spool(directory))
        running = False
    except SpoolBusy:
        running = True
    found = recover(directory / POINTS_FILE)
    ledger = Ledger()
    ledger.recover(found.spooled, found.thinned)
    known = ledger.totals()
    counts = read_counts(directory / CURSOR_FILE) or {"delivered_points": 0, "rejected_points": 0}
    document = {
        "running": running,
        "points": point_counts(
            known["collected"],
            known["spooled"],
            counts["delivered_points"],
            counts["rejected_points"],
            known["thinned"],
            known["thinned_delivered"],
        ),
        "measurements": ledger.measurements(),
        "thinnings": ledger.thinnings(),
        "torn_bytes": 0 if running else found.torn_bytes,
        "summary": load_summary(directory),
        "replay": load_summary(directory, REPLAY_FILE),
    }
    print(json.dumps(document, indent=1))
    return EXIT_OK


def _demand_spool(directory: Path) -> None:
    if not (directory / POINTS_FILE).is_file():
        raise UsageError(f"--spool-dir {directory}: no {POINTS_FILE} in it")


COMMANDS = {"run": run_command, "replay": replay_command, "status": status_command}


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    try:
        arguments = parser().parse_args(argv)
        return COMMANDS[arguments.command](arguments)
    except UsageError as error:
        print(f"telemetry_agent: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (OSError, ValueError, SpoolBusy) as error:
        print(f"telemetry_agent: error: {error}", file=sys.stderr)
        return EXIT_FAILED
