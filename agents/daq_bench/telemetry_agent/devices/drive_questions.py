"""The questions to one drive: the tool that asks each, and how often: smartctl for all, nvme-cli for what smartctl leaves out.

Promise: only reads. Facts that do not change are asked once per drive. A vendor's log page is asked for only where the drive
lists it, or else once: asking for a page that a drive has not makes an entry in its error log.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daq_bench.candidate_kit import nand_pages, smartctl
from daq_bench.candidate_kit.tools import SHOWN_CHARACTERS, Answer, find_tool, run_tool, shown
from daq_bench.telemetry_agent.devices import nvme_events, nvme_pages, smartctl_json, vendor_pages
from daq_bench.telemetry_agent.devices.drive_events import EventLog
from daq_bench.telemetry_agent.reading.collector import Unsupported

TOOL_S_MAX = 20.0  # of each call; a drive behind a saturated queue may take seconds
REFUSED_PAUSE_S = 600.0
SMARTCTL, IDENTIFY, HEALTH, OCP, INTEL, LIMITS = "smartctl", "identify", "health", "ocp", "intel", "limits"
ENDURANCE = "endurance"  # texts["endurance 1"] is of group 1
EVENTS = "events"
VENDOR_PAGES = {OCP: nand_pages.OCP_PAGE, INTEL: nand_pages.INTEL_PAGE}
# nvme-cli up to 1.12 leaves out leading zeros: "%#08x" makes 0x1600164 of 79 and 83 degrees C.
FEATURE_LINE = re.compile(
    r"\s*get-feature:\s*0x10\b.*Current value:\s*(?:0x)?([0-9a-fA-F]{1,8})\s*\n\s*", re.IGNORECASE
)
DEV, BEHIND = "/dev/", " "  # a disk behind a controller is named by its path and type: "bus/0 megaraid,3"
# smartctl(8), -d: types of a disk that some controller hides. It finds those of megaraid and sssraid by itself.
BEHIND_TYPE = re.compile(r"(?:sat\+)?(?:megaraid|cciss|sssraid|areca|3ware|hpt|aacraid),[0-9/,]+")
# In these words smartctl says of a volume of HPE's Smart Array (drivers hpsa, cciss) how its disks are asked. They are numbered without
# holes, and its scan does not find them.
WANTS_CCISS = re.compile(r"-d cciss,N\b")
CCISS_DISKS_MAX = 128
NOT_INSTALLED = "neither smartctl (package smartmontools) nor nvme (package nvme-cli) is installed"


@dataclass
class _Known:
    """The known facts of one drive. `pages`: the vendor's pages that it has; None: not found out yet."""

    texts: dict[str, str] = field(default_factory=dict)
    pages: list[str] | None = None
    no_groups: set[int] = field(default_factory=set)  # endurance groups that gave no sound page
    events: EventLog = field(default_factory=EventLog)
    answered: bool = False
    refused_s: float | None = None
    refusal: str = ""


class DriveQuestions:
    """`ask` may run in several threads at a time, but for one drive in one only."""

    def __init__(self, tool_s_max: float = TOOL_S_MAX) -> None:
        self._tool_s_max = tool_s_max
        self._known: dict[str, _Known] = {}

    def forget_all_but(self, names: list[str]) -> None:
        """A drive that comes back may be another one."""
        self._known = {name: self._known.get(name) or _Known() for name in names}

    def ask(self, name: str) -> tuple[Mapping[str, str], list[str]]:
        """(texts, faults) of one drive. Raises Unsupported when it has no health data, ValueError on nonsense."""
        known = self._known.setdefault(name, _Known())
        program, nvme = find_tool("smartctl"), find_tool("nvme") if name.startswith("nvme") else None
        if program is None and nvme is None:
            raise Unsupported("smartctl is not installed (package smartmontools)")
        if known.refused_s is not None and time.monotonic() - known.refused_s < REFUSED_PAUSE_S:
            raise Unsupported(known.refusal)
        texts: dict[str, str] = {}
        faults: list[str] = []
        if program is not None:
            try:
                texts[SMARTCTL], said = self._smartctl(program, name)
                faults += [f"{name}: smartctl: {fault}" for fault in said]
            except (OSError, ValueError, Unsupported) as error:
                if nvme is None and isinstance(error, Unsupported):
                    if known.answered:
                        raise OSError(str(error)) from None  # a drive that is lost is not one without health data
                    known.refused_s, known.refusal = time.monotonic(), str(error)
                if nvme is None:
                    raise
                faults.append(f"{name}: {error}")
        if nvme is not None:
            self._ask_nvme(nvme, name, known, texts, faults)
        if not texts:
            raise OSError("; ".join(fault[len(name) + 2 :] for fault in faults))
        known.answered = True
        return texts, faults

    def behind_controllers(self, refusals: Sequence[str] = ()) -> tuple[list[str], list[str]]:
        """(disks, faults): the disks that smartctl finds behind RAID controllers, as names that `ask` takes; those of a Smart Array by
        what it said of the volumes that refused ("sda: ...")."""
        program = find_tool("smartctl")
        if program is None:
            return [], []
        found: list[str] = []
        faults: list[str] = []
        try:
            found = behind_of(
                decoded(run_tool([program, "--scan-open", "-j"], self._tool_s_max, "smartctl --scan-open"))
            )
        except (OSError, ValueError) as error:
            faults.append(f"disks behind a RAID controller are not seen: {error}")
        serials: set[str] = set()
        for volume in (text.partition(": ")[0] for text in refusals if WANTS_CCISS.search(text)):
            try:
                found += self._of_smart_array(program, volume, serials)
            except (OSError, ValueError) as error:
                faults.append(f"{volume}: disks behind it are not seen: {error}")
        return found, faults

    def _of_smart_array(self, program: str, volume: str, serials: set[str]) -> list[str]:
        """The disks of the controller that a volume belongs to, but for those that another volume has named (`serials` is added to)."""
        found = []
        for number in range(CCISS_DISKS_MAX):
            kind = f"cciss,{number}"
            document = decoded(run_tool([program, "-j", "-i", "-d", kind, f"{DEV}{volume}"], self._tool_s_max))
            status = (
                document.get("smartctl", {}).get("exit_status") if isinstance(document.get("smartctl"), dict) else None
            )
            if not isinstance(status, int) or status & smartctl.COMMAND_LINE_OR_OPEN_FAILED:
                break
            serial = str(document.get("serial_number") or f"{volume} {number}")
            if serial not in serials:
                serials.add(serial)
                found.append(f"{volume}{BEHIND}{kind}")
        return found

    def _smartctl(self, program: str, name: str) -> tuple[str, list[str]]:
        path, _, kind = name.partition(BEHIND)
        options = ["-d", kind] if kind else []
        done = run_tool([program, *smartctl.ARGUMENTS, *options, f"{DEV}{path}"], self._tool_s_max)
        document = decoded(done)
        fault = smartctl_json.answer_fault(document)
        if fault:
            raise Unsupported(fault)
        text, before = smartctl.split(done.text)
        faults = [shown(line) for line in before]
        smartctl_json.health_fields(document, faults)
        smartctl_json.temperatures(document, faults)
        smartctl_json.limits(document, faults)
        return text, faults

    def _ask_nvme(self, program: str, name: str, known: _Known, texts: dict[str, str], faults: list[str]) -> None:
        """Adds the drive's own pages to `texts`, and what failed to `faults`; one part's failure leaves the others."""
        nvme = _Nvme(program, name, self._tool_s_max)

        def health() -> None:
            page = nvme.page("smart-log")
            said: list[str] = []
            nvme_pages.health_fields(page, said)
            faults.extend(f"{name}: {fault}" for fault in said)
            texts[HEALTH] = page.hex()

        def unchanging() -> None:
            if IDENTIFY not in known.texts:
                page = nvme.page("id-ctrl")
                nvme_pages.identity(page)
                known.texts[IDENTIFY] = page.hex()
            texts[IDENTIFY] = known.texts[IDENTIFY]
            identity = nvme_pages.identity(bytes.fromhex(texts[IDENTIFY]))
            if identity.sets_thermal_limits and LIMITS not in known.texts:
                known.texts[LIMITS] = str(nvme.thermal_limits())
            texts.update(known.texts)

        def vendor() -> None:
            if known.pages is None and IDENTIFY in known.texts:
                known.pages = nvme.vendor_pages(nvme_pages.identity(bytes.fromhex(known.texts[IDENTIFY])))
            for one in known.pages or []:
                page = nvme.log(VENDOR_PAGES[one])
                try:
                    vendor_fields({**texts, one: page.hex()})
                except ValueError as error:
                    known.pages = [other for other in known.pages or [] if other != one]
                    faults.append(f"{name}: {error}; not read again")
                else:
                    texts[one] = page.hex()

        def endurance() -> None:
            groups = (
                nvme_pages.identity(bytes.fromhex(known.texts[IDENTIFY])).endurance_groups
                if IDENTIFY in known.texts
                else 0
            )
            for group in range(1, min(groups, nvme_pages.ENDURANCE_GROUPS_MAX) + 1):
                if group in known.no_groups:
                    continue
                try:
                    page = nvme.log(nvme_pages.ENDURANCE_PAGE, f"--lsi={group}")
                    nvme_pages.endurance_fields(page)
                except TimeoutError:
                    raise
                except (OSError, ValueError) as error:  # identifiers may have holes: each is asked for once
                    known.no_groups.add(group)
                    faults.append(f"{name}: endurance group {group}: {error}; not read again")
                else:
                    texts[f"{ENDURANCE} {group}"] = page.hex()

        def events() -> None:
            own = known.texts.get(IDENTIFY)
            if own is None or not nvme_pages.identity(bytes.fromhex(own)).logs_events:
                return
            told = known.events.read(lambda size, *options: nvme.log(nvme_events.PAGE, *options, size=size))
            if told is not None:
                texts[EVENTS], said = json.dumps(told.document), told.faults
                faults.extend(f"{name}: {fault}" for fault in said)

        for part in (health, unchanging, vendor, endurance, events):
            try:
                part()
            except TimeoutError as error:  # it would wait as long for the next part
                faults.append(f"{name}: {error}")
                return
            except (OSError, ValueError) as error:
                faults.append(f"{name}: {error}")


class _Nvme:
    """nvme-cli, for one drive. Every call raises OSError with nvme-cli's own reason."""

    def __init__(self, program: str, drive: str, limit_s: float) -> None:
        self._program, self._drive, self._limit_s = program, drive, limit_s

    def page(self, command: str, *options: str) -> bytes:
        """A structure as the drive sends it."""
        return self._run(command, *options, "--raw-binary").output

    def log(self, number: int, *options: str, size: int = nand_pages.PAGE_BYTES) -> bytes:
        """A log page."""
        return self.page("get-log", f"--log-id={number:#x}", f"--log-len={size}", *options)

    def thermal_limits(self) -> int:
        """Feature 10h. Raises ValueError for another answer."""
        text = self._run("get-feature", "--feature-id=0x10").text
        match = FEATURE_LINE.fullmatch(text)  # a number without its line's end is cut off
        if match is None:
            raise ValueError(f"nvme get-feature 0x10: not understood: {shown(text)}")
        return int(match[1], 16)

    def vendor_pages(self, identity: nvme_pages.Identity) -> list[str]:
        """Returns the pages that the drive has, out of those that we understand."""
        wanted = [OCP, *([INTEL] if identity.vendor in nand_pages.INTEL_VENDORS else [])]
        if identity.lists_pages:
            listed = nvme_pages.supported_pages(self.log(0, size=nvme_pages.SUPPORTED_PAGES_BYTES))
            wanted = [one for one in wanted if VENDOR_PAGES[one] in listed]
        found = []
        for one in wanted:
            try:
                page = self.log(VENDOR_PAGES[one])
            except TimeoutError:
                raise
            except OSError:
                continue  # the drive has no such page, which is no fault
            if one != OCP or nand_pages.is_ocp(page):
                found.append(one)
        return found

    def _run(self, command: str, *options: str) -> Answer:
        argv = [self._program, command, f"/dev/{self._drive}", *options]
        done = run_tool(argv, self._limit_s, f"nvme {command}")
        if done.status != 0:
            which = " ".join((command, *(option for option in options if "-id=" in option)))
            # For a command line or device that it cannot use, the first line says why and the help follows.
            said = [line for line in done.errors.decode("utf-8", "replace").splitlines() if line.strip()]
            raise OSError(f"nvme {which}: {said[0].strip()[:SHOWN_CHARACTERS] if said else done.reason}")
        return done


def vendor_fields(texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields for `smart` and for `smart_ocp` from a drive's vendor pages. Raises ValueError for a page that is not sound."""
    own: dict[str, Any] = {}
    ocp: dict[str, Any] = {}
    if OCP in texts:
        ocp = vendor_pages.ocp_fields(bytes.fromhex(texts[OCP]))
        own = {name: ocp.pop(name) for name in ("nand_written_bytes", "nand_read_bytes") if name in ocp}
        if "nand_written_bytes" in own:
            own["nand_source"] = "OCP log page C0h"
    elif INTEL in texts and HEALTH in texts:
        host = nvme_pages.health_fields(bytes.fromhex(texts[HEALTH]))["data_written_bytes"]
        written = nand_pages.intel_nand_bytes(bytes.fromhex(texts[INTEL]), int(host))
        if written is not None:
            own = {"nand_written_bytes": written, "nand_source": "Intel log page CAh"}
    return own, ocp


def behind_of(document: Mapping[str, Any]) -> list[str]:
    """The names that `ask` takes of the disks that `smartctl --scan-open -j` lists behind controllers."""
    rows = document.get("devices")
    found = {
        f"{row['name'][len(DEV) :]}{BEHIND}{row['type']}"
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
        and BEHIND_TYPE.fullmatch(str(row.get("type", "")))
        and str(row.get("name", "")).startswith(DEV)
    }
    return sorted(found)


def decoded(done: Answer) -> dict[str, Any]:
    """smartctl's JSON. Raises ValueError that shows what it printed instead."""
    document = smartctl.document_of(done.text)
    if document is None:
        printed = shown(done.text or done.errors.decode("utf-8", "replace"))
        raise ValueError(f"smartctl: not JSON: {printed}")
    return document
