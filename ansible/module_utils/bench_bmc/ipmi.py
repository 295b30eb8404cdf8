"""ipmitool: raw commands and fan sensors, in band or over the LAN, with errors that name cause and remedy.

Promises: the password is only ever in the environment of ipmitool (``-E``), never in an argument or a message; every
call is bounded; a BMC that does not answer, refuses the user or refuses a command are told apart.
Knows nothing of Ansible. Runs on the candidate or on the control node: Python 3.9, standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass

from ansible.module_utils.bench_bmc.errors import BmcError
from ansible.module_utils.bench_bmc.ipmi_units import RPM, numbered, unit_of

CALL_S_MAX = 60.0
SPEED = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")  # RPM; anything else is no reading
LAN_TRIES, DIAGNOSIS_TRIES = 3, 1  # of one second each, of every message that opens a session
EXECUTABLE_DIRECTORIES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


class CommandRefusedError(Exception):
    """The BMC answered, and said no to one command; the text is its completion code."""


@dataclass(frozen=True)
class Bmc:
    """Describes how the BMC is reached. No address: through the machine's own IPMI device."""

    address: str = ""
    port: int = 623
    user: str = ""
    cipher_suite: int = 17
    password: str = ""
    password_from: str = ""  # the environment variable or variable that holds it, for messages

    def __repr__(self) -> str:
        """Describe it without the password."""
        return f"Bmc({self.where})"

    @property
    def where(self) -> str:
        """Name the BMC for people."""
        return f"{self.address} port {self.port}, user {self.user}" if self.address else "the machine's IPMI device"


def find_ipmitool() -> str:
    """Return ipmitool's path; empty where it is not installed. sbin need not be on a login's PATH."""
    return shutil.which("ipmitool") or shutil.which("ipmitool", path=EXECUTABLE_DIRECTORIES) or ""


def command_of(bmc: Bmc, ipmitool: str, tries: int = LAN_TRIES) -> list[str]:
    """Return ipmitool with its connection; no secret is in it."""
    if not bmc.address:
        return [ipmitool]
    lan = ["-I", "lanplus", "-H", bmc.address, "-p", str(bmc.port), "-U", bmc.user, "-C", str(bmc.cipher_suite)]
    return [ipmitool, *lan, "-N", "1", "-R", str(tries), "-E"]


# The messages of ipmitool -v when no session comes about: pattern, cause, remedy.
SESSION_FAULTS = (
    (
        r"HMAC is invalid|RAKP \d message indicates an error",
        "it refuses this user and password",
        "correct bmc.user or the password in {password_from}, or unlock the user",
    ),
    (
        r"no matching cipher suite|invalid (?:authentication|integrity|confidentiality) algorithm",
        "it refuses cipher suite {cipher_suite}",
        "set bmc.cipher_suite (ipmitool -C): 3 where the BMC is older, 17 where it is newer",
    ),
    (
        r"Address lookup .* failed",
        "its name cannot be resolved",
        "correct bmc.address",
    ),
    (
        r"",  # no answer at all
        "it does not answer",
        "check bmc.address and bmc.ipmi_port, that the BMC is on this network and that IPMI over LAN is enabled in it;"
        " some BMCs also keep silent for a wrong cipher suite: try bmc.cipher_suite: 3",
    ),
)


class Ipmi:
    """One BMC through ipmitool."""

    def __init__(self, bmc: Bmc) -> None:
        """Find ipmitool; BmcError where it is not installed."""
        self.bmc = bmc
        ipmitool = find_ipmitool()
        if not ipmitool:
            side = "control node" if bmc.address else "candidate"
            raise BmcError(f"ipmitool is not installed on the {side}: install the package ipmitool there")
        self.command = command_of(bmc, ipmitool)
        self.diagnosis = [*command_of(bmc, ipmitool, DIAGNOSIS_TRIES), "-v", "mc", "info"]

    def environment(self) -> dict[str, str]:
        """Return the environment of ipmitool and of the fan guard: the password, and nothing else that we know."""
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        environment["LC_ALL"] = "C"
        # ipmitool -E looks at both; only ours may count.
        environment["IPMI_PASSWORD"] = self.bmc.password
        return environment

    def _call(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                argv,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=CALL_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BmcError(
                f"BMC {self.bmc.where}: ipmitool had no answer within {CALL_S_MAX:.0f} s; reset the BMC"
            ) from None

    def _run(self, *arguments: str) -> str:
        """Return what ipmitool prints. CommandRefusedError: the BMC said no. BmcError: it cannot be talked to."""
        return self._output(self._call([*self.command, *arguments]), arguments)

    def _output(self, done: subprocess.CompletedProcess[str], arguments: tuple[str, ...]) -> str:
        if done.returncode == 0:
            return done.stdout
        said = " ".join(done.stderr.split())
        refused = re.search(r"rsp=(0x[0-9a-f]+)\): (.+)", said)
        if refused:
            raise CommandRefusedError(f"{refused.group(2)} (completion code {refused.group(1)})")
        if "Unable to establish" in said or "Could not open" in said:
            raise BmcError(self._session_fault(said))
        raise BmcError(f"BMC {self.bmc.where}: ipmitool {arguments[0]} failed: {said or 'no reason given'}")

    def _session_fault(self, said: str) -> str:
        """Ask once more with -v, which tells why there is no session."""
        if not self.bmc.address:
            return (
                f"the machine's IPMI device cannot be used: {said}; load the kernel modules ipmi_si and ipmi_devintf, or"
                " give bench_candidate.bmc an address"
            )
        text = self._call(self.diagnosis).stderr
        for pattern, cause, remedy in SESSION_FAULTS:
            if re.search(pattern, text):
                filled = {"password_from": self.bmc.password_from, "cipher_suite": self.bmc.cipher_suite}
                return f"BMC {self.bmc.where}: {cause.format(**filled)} (IPMI). Remedy: {remedy.format(**filled)}"
        raise AssertionError("the last pattern matches everything")

    def raw(self, data: list[str]) -> list[int]:
        """Send one raw command; return the bytes after the completion code."""
        return [int(byte, 16) for byte in self._run("raw", *data).split()]

    def manufacturer_id(self) -> int:
        """Return the BMC's IANA enterprise number."""
        text = self._run("mc", "info")
        found = re.search(r"^Manufacturer ID\s*:\s*(\d+)", text, re.MULTILINE)
        if not found:
            raise BmcError(f"BMC {self.bmc.where}: ipmitool mc info shows no Manufacturer ID; set bmc.vendor")
        return int(found.group(1))

    def fans(self) -> dict[str, float | None]:
        """Return each fan's speed in RPM, None for one without a reading. ipmitool fails also where one sensor of many cannot be read: what
        it has read counts, as it does for the agent."""
        arguments = ("-c", "sdr", "type", "Fan")
        done = self._call([*self.command, *arguments])
        fans = parse_fans(done.stdout)
        return fans if any(speed is not None for speed in fans.values()) else parse_fans(self._output(done, arguments))


def parse_fans(text: str) -> dict[str, float | None]:
    """Read `ipmitool -c sdr type Fan`: name,value,unit,status. Redundancy sensors are no fans; one that states a share of its full speed
    states no RPM. Units and names are those of the agent (bench_bmc.ipmi_units)."""
    fans: dict[str, float | None] = {}
    seen: Counter[str] = Counter()
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) < 3:
            continue
        silent = fields[1] in ("", "No Reading", "no reading") and "ns" in fields[2:]
        speed = float(fields[1]) if SPEED.fullmatch(fields[1]) else None
        if silent or unit_of(fields[2], speed or 0.0, fields[0]) == RPM:
            seen[fields[0]] += 1
            fans[numbered(fields[0], seen[fields[0]])] = speed
    return fans
