"""SELinux's denials that concern the bench, from the audit log and the kernel's: `denials.py {since_s, names, folders}` as JSON.

Prints {result: {denied, unread}}. `denied` has one line for each kind of denial, with its number; `unread` is why no log could be read. A
denial is the bench's by the process (`names`; Python as a service) or by a path below `folders`. One that was not enforced does not
count. Reads the ends of the logs only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daq_bench.rig.on_candidate.readiness import ASK_S_MAX, ENFORCE, selinux

AUDIT_LOG = Path("/var/log/audit/audit.log")
LOG_BYTES_MAX = 2**24
LINE_CHARACTERS_MAX = 4096
KINDS_MAX = 10
# In auditd's log: type=AVC msg=audit(...): avc: ...; in the kernel's, where no auditd runs: audit: type=1400 audit(...): avc: ...
DENIAL = re.compile(
    r"audit\((?P<id>(?P<s>\d{1,12})\.\d{3}:\d{1,20})\):.*?avc: +denied +\{ (?P<what>[a-z0-9_ ]{1,200}) \} for (?P<about>.*?)"
    r"scontext=(?P<source>\S+) tcontext=(?P<target>\S+) tclass=(?P<kind>\w+)(?: permissive=(?P<permissive>[01]))?"
)
FIELD = re.compile(r'\b(comm|path|name|exe)=(?:"([^"]*)"|([0-9A-F]{2,}))')
SERVICES = ("init_t", "unconfined_service_t")  # the domains of a unit of ours; other services of Python have their own
COMM_CHARACTERS = 15  # the kernel keeps no more of a process' name; systemd writes "(" and its last 8 characters before it runs the program


def ends_of_logs(audit: Path = AUDIT_LOG) -> Iterator[str]:
    """The logs that can be read, the oldest first."""
    for file in (audit.with_name(f"{audit.name}.1"), audit):
        try:
            with file.open("rb") as stream:
                stream.seek(max(0, file.stat().st_size - LOG_BYTES_MAX))
                yield stream.read(LOG_BYTES_MAX).decode("utf-8", "replace")
        except OSError:
            continue
    try:
        done = subprocess.run(["dmesg"], stdin=subprocess.DEVNULL, capture_output=True, timeout=ASK_S_MAX, check=False)
    except (OSError, subprocess.SubprocessError):
        return
    if done.returncode == 0:
        yield done.stdout[-LOG_BYTES_MAX:].decode("utf-8", "replace")


def ours(fields: dict[str, str], domain: str, names: list[str], folders: list[str]) -> bool:
    """Whether a denial concerns the bench: by the process' name, whole or as systemd cuts it, or by a path."""
    comm = fields.get("comm", "")
    if comm in [name[:COMM_CHARACTERS] for name in names]:
        return True
    if comm.startswith("(") and any(name.endswith(comm[1:].rstrip(")")) for name in names if len(comm) > 2):
        return True
    if "python" in comm and domain in SERVICES:
        return True
    paths = [fields.get(key, "") for key in ("path", "name", "exe")]
    return any(path == folder or path.startswith(f"{folder}/") for path in paths for folder in folders)


def denied(text: str, since_s: float, names: list[str], folders: list[str], seen: set[str]) -> Iterator[str]:
    """Each enforced denial of the bench's, in words; `seen` takes its number, by which it is the same in both logs."""
    for line in text.splitlines():
        if "denied" not in line:
            continue
        found = DENIAL.search(line[:LINE_CHARACTERS_MAX])
        if found is None or int(found["s"]) < since_s or found["permissive"] == "1" or found["id"] in seen:
            continue
        fields = {key: plain or bytes.fromhex(code[: len(code) // 2 * 2]).decode("utf-8", "replace")
                  for key, plain, code in FIELD.findall(found["about"])}  # fmt: skip
        domain, kind = (context.split(":")[2:3] or ["?"] for context in (found["source"], found["target"]))
        if ours(fields, domain[0], names, folders):
            seen.add(found["id"])
            on = fields.get("path") or fields.get("name") or found["kind"]
            yield f"{fields.get('comm', 'a process')} ({domain[0]}) was denied {found['what']} on {on} ({kind[0]}, {found['kind']})"


def main(asked: dict[str, Any]) -> dict[str, Any]:
    if not selinux(ENFORCE):
        return {"result": {"denied": [], "unread": ""}}
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    logs = 0
    for text in ends_of_logs():
        logs += 1
        counts.update(denied(text, asked["since_s"], asked["names"], asked["folders"], seen))
    said = [f"{what}, {number} times" if number > 1 else what for what, number in counts.most_common(KINDS_MAX)]
    if len(counts) > KINDS_MAX:
        said.append(f"{len(counts) - KINDS_MAX} more kinds of denial")
    return {"result": {"denied": said, "unread": "" if logs else f"neither {AUDIT_LOG} nor dmesg can be read"}}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
