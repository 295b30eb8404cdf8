"""SELinux's denials: which are the bench's, in both logs, and what is told of them. The lines are of public reports, named at each."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.candidate.host import NAMES, denials_cause
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate import denials

FOLDERS = ["/opt/daq-storage-bench", "/var/lib/daq-storage-bench"]
# fedora-selinux/selinux-policy#2663
NNP = (
    'type=AVC msg=audit(1745824193.880:2207): avc:  denied  { nnp_transition } for  pid=10529 comm="(s-server)" '
    "scontext=system_u:system_r:init_t:s0 tcontext=system_u:system_r:redis_t:s0 tclass=process2 permissive=0"
)
# A kernel without auditd (a public dmesg that was given to audit2allow).
KERNEL = (
    '[   38.701549] audit: type=1400 audit(1661367314.236:11): avc:  denied  { execute } for  pid=3307 comm="(bootctl)" name="bootctl" '
    'dev="dm-0" ino=186106 scontext=system_u:system_r:init_t:s0 tcontext=system_u:object_r:bootloader_exec_t:s0 tclass=file permissive=0'
)
# A script that systemd starts from a folder of its own (a public server's notes).
SCRIPT = (
    'type=AVC msg=audit(1783958310.618:498): avc:  denied  { execute } for  pid=11499 comm="(rator.sh)" name="backup_orchestrator.sh" '
    'dev="dm-0" ino=41963399 scontext=system_u:system_r:init_t:s0 tcontext=unconfined_u:object_r:default_t:s0 tclass=file permissive=0'
)


def told(text: str, since_s: float = 0, seen: set[str] | None = None) -> list[str]:
    return list(denials.denied(text, since_s, list(NAMES), FOLDERS, set() if seen is None else seen))


def as_ours(line: str, **values: str) -> str:
    """The line as it would be of a process, a path or a mode of ours."""
    for key, value in values.items():
        line = re.sub(rf'\b{key}="?[^" ]+"?', f"{key}={value}", line)
    return line


@pytest.mark.parametrize("line", [NNP, KERNEL, SCRIPT])
def test_a_denial_of_others_is_none_of_ours(line: str) -> None:
    assert told(line) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (as_ours(KERNEL, comm='"(aqwriter)"', name='"daqwriter"'),
         "(aqwriter) (init_t) was denied execute on daqwriter (bootloader_exec_t, file)"),
        (as_ours(SCRIPT, comm='"smartctl"'), "smartctl (init_t) was denied execute on backup_orchestrator.sh (default_t, file)"),
        (as_ours(NNP, comm='"(python3)"'), "(python3) (init_t) was denied nnp_transition on process2 (redis_t, process2)"),
        (SCRIPT.replace("name=", 'path="/opt/daq-storage-bench/lib/libx.so" name='),
         "(rator.sh) (init_t) was denied execute on /opt/daq-storage-bench/lib/libx.so (default_t, file)"),
        (as_ours(SCRIPT, comm="66696F"), "fio (init_t) was denied execute on backup_orchestrator.sh (default_t, file)"),
    ],
)  # fmt: skip
def test_ours_are_told_by_process_and_by_path(line: str, words: str) -> None:
    assert told(line) == [words]


def test_what_was_let_through_or_came_before_is_no_cause() -> None:
    line = as_ours(SCRIPT, comm='"daqwriter"')
    assert told(as_ours(line, permissive="1")) == []
    assert told(line, since_s=1783958311) == [] and len(told(line, since_s=1783958310)) == 1
    other = line.replace("system_r:init_t", "system_r:tuned_t")
    assert len(told(other)) == 1 and told(as_ours(other, comm='"python3"')) == []
    assert told(line.replace("/opt", "/opt2").replace("daqwriter", "daqwriterx")) == []


def test_the_same_denial_in_both_logs_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = as_ours(KERNEL, comm='"netprobe"')
    found = result(
        tmp_path, monkeypatch, f"{line}\n{as_ours(line, tclass='dir').replace(':11)', ':12)')}\n", dmesg=f"{line}\n"
    )
    assert found == {"denied": ["netprobe (init_t) was denied execute on bootctl (bootloader_exec_t, file)",
                                "netprobe (init_t) was denied execute on bootctl (bootloader_exec_t, dir)"], "unread": ""}  # fmt: skip


def result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str | None, dmesg: str | None = None, mode: str = "1"
) -> Any:
    """Returns what the reader prints on a machine in this mode with these logs; None: no such file, no such tool."""
    (tmp_path / "enforce").write_text(mode, encoding="ascii")
    monkeypatch.setattr(denials, "ENFORCE", tmp_path / ("enforce" if mode else "nothing"))
    audit = tmp_path / "audit.log"
    if log is not None:
        audit.write_text(log, encoding="utf-8")
    monkeypatch.setattr(denials.ends_of_logs, "__defaults__", (audit,))
    tool = tmp_path / "bin" / "dmesg"
    tool.parent.mkdir()
    if dmesg is not None:
        (tmp_path / "kernel").write_text(dmesg, encoding="utf-8")
        tool.write_text(f"#!/bin/sh\nexec /bin/cat {tmp_path}/kernel\n", encoding="ascii")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent))
    return denials.main({"since_s": 0, "names": list(NAMES), "folders": FOLDERS})["result"]


def test_where_selinux_is_off_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(tmp_path, monkeypatch, as_ours(SCRIPT, comm='"fio"'), mode="") == {"denied": [], "unread": ""}


def test_logs_that_cannot_be_read_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = result(tmp_path, monkeypatch, None)
    assert found["denied"] == [] and "audit.log nor dmesg can be read" in found["unread"]


def test_a_storm_and_a_hostile_log_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the end that is read nothing counts; a line without an end, one that only looks like a denial and bytes cost nothing."""
    line = as_ours(SCRIPT, comm='"fio"')
    storm = "".join(line.replace(":498)", f":{n})").replace("ino=41963399", "\x00\x1b[2J") + "\n" for n in range(3000))
    kinds = "".join(line.replace("orchestrator", f"o{n}").replace(":498)", f":{9000 + n})") + "\n" for n in range(40))
    hostile = "avc: denied { " + "a " * 2_000_000 + "\naudit(1.000:1): avc:  denied  { } for\n" + "denied " * 10**6
    monkeypatch.setattr(denials, "LOG_BYTES_MAX", 2**22)
    log = as_ours(line, comm='"nvme"') + "\n" + "x" * 2**22 + "\n" + kinds
    found = result(tmp_path, monkeypatch, log, dmesg=hostile[-(2**21) :] + "\n" + storm)
    assert len(found["denied"]) == denials.KINDS_MAX + 1 and found["denied"][-1] == "31 more kinds of denial"
    assert (
        found["denied"][0] == "fio (init_t) was denied execute on backup_orchestrator.sh (default_t, file), 3000 times"
    )
    assert not any(text.startswith("nvme") for text in found["denied"])


def test_the_cause_is_one_sentence_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    here = LocalMachine()
    places = SimpleNamespace(programs=Path(FOLDERS[0]), state=Path(FOLDERS[1]))
    monkeypatch.setattr(here, "call", lambda *_, **__: {"denied": ["fio was denied x\x1b[2J"], "unread": ""})
    said = denials_cause(here, places, 0.0)  # type: ignore[arg-type]
    assert said.startswith(
        "SELinux denied the bench: fio was denied x\\x1b[2J. Remedy: `restorecon -RFv /opt/daq-storage-bench /var/lib"
    )
    monkeypatch.setattr(here, "call", lambda *_, **__: {"denied": [], "unread": ""})
    assert denials_cause(here, places, 0.0) == ""  # type: ignore[arg-type]

    def lost(*_: object, **__: object) -> None:
        raise BenchError("the candidate is gone")

    monkeypatch.setattr(here, "call", lost)
    assert denials_cause(here, places, 0.0) == ""  # type: ignore[arg-type]


@pytest.mark.skipif(denials.ENFORCE.exists(), reason="this machine has SELinux: it may have denied something")
def test_this_machine_without_selinux_denies_nothing() -> None:
    assert LocalMachine().call("denials", '{"since_s": 0, "names": [], "folders": []}') == {"denied": [], "unread": ""}
