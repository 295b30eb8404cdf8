"""The guard's decision from facts alone; on drives of the virtual candidate it is tried in test_virtual_raw.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rig.on_candidate import raw_device
from rig.on_candidate.raw_device import RefusalError, find, objections

EMPTY: dict[str, Any] = {
    **dict.fromkeys(("fstype", "label", "uuid", "partuuid", "partlabel", "mountpoint", "wwn")),
    "type": "disk",
    "ro": False,
}


def device(name: str, **changes: Any) -> dict[str, Any]:
    return {**EMPTY, "kname": name, "path": f"/dev/{name}", "serial": "S1", "size": 10**9, **changes}


def said(
    drive: dict[str, Any], consent: bool = True, signatures: Any = None, fstab: str = "", command_line: str = ""
) -> list[str]:
    return objections(drive, signatures or {}, consent, fstab, command_line)


def test_an_empty_drive_that_may_be_lost_is_let_pass() -> None:
    assert said(device("nvme0n1")) == []
    assert said(device("nvme0n1"), signatures={"nvme0n1": ["ext4"]}) == []


def test_without_consent_what_would_be_lost_is_named() -> None:
    assert said(device("nvme0n1"), consent=False) == [
        "it holds no known signature (which does not mean no data), and there is no consent to lose it: "
        "write destroy: true into the target"
    ]
    (text,) = said(device("nvme0n1"), consent=False, signatures={"nvme0n1": ["gpt"], "nvme0n1p1": ["xfs"]})
    assert text.startswith("it holds gpt on nvme0n1, xfs on nvme0n1p1, and")


@pytest.mark.parametrize(
    ("drive", "more", "text"),
    [
        (device("md0", type="raid1"), {}, "it is a raid1, not a whole drive"),
        (device("nvme0n1", ro=True), {}, "it is read-only"),
        (device("nvme0n1", mountpoint="/data"), {}, "nvme0n1 is mounted at /data: unmount it"),
        (
            device("a", children=[device("a1", type="part", mountpoint="[SWAP]")]),
            {},
            "a1 is swap space in use: swapoff it",
        ),
        (
            device("a", children=[device("dm-0", type="crypt")]),
            {},
            "it is held by dm-0 (crypt): stop or remove that first",
        ),
        (device("a"), {"signatures": {"a": ["LVM2_member"]}}, "a belongs to a set of drives (LVM2_member)"),
        (
            device("a", children=[device("a1", type="part", uuid="u-1")]),
            {"fstab": 'UUID="u-1" /home ext4'},
            "a1 is named by /etc/fstab",
        ),
        (
            device("a"),
            {"command_line": "quiet root=/dev/a rw"},
            "a is named by /etc/fstab or the kernel's command line",
        ),
    ],
)
def test_what_uses_a_drive_overrides_consent(drive: dict[str, Any], more: dict[str, Any], text: str) -> None:
    assert any(text in one for one in said(drive, consent=True, **more))


def test_a_commented_line_of_fstab_names_nothing() -> None:
    assert said(device("a", uuid="u-1"), fstab="# UUID=u-1 / ext4\n\n") == []


def test_a_drive_is_found_by_serial_or_wwn_and_only_one() -> None:
    roots = [device("a", wwn="eui.1"), device("b", wwn="eui.2"), device("c", serial="S3"), device("d", serial=None)]
    assert find("eui.2", roots)["kname"] == "b"
    assert find("S3", roots)["kname"] == "c"
    with pytest.raises(
        RefusalError, match=r"2 devices have the serial S1: /dev/a \(wwn eui.1\), /dev/b \(wwn eui.2\)\. Name the WWN"
    ):
        find("S1", roots)
    with pytest.raises(
        RefusalError, match=r"no drive has the serial S9; this machine has: /dev/a S1, /dev/b S1, /dev/c S3"
    ):
        find("S9", roots)
    with pytest.raises(RefusalError):
        find("", roots)


def test_a_command_for_another_drive_than_the_one_examined_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a reboot or a hot swap the name of yesterday may belong to another drive: only this program knows both."""
    listed = {"blockdevices": [device("null")]}
    monkeypatch.setattr(raw_device, "said", lambda *argv: json.dumps(listed) if argv[0] == "lsblk" else "")
    started = tmp_path / "started"
    answer = raw_device.main(["run", "S1", "yes", "", "/dev/other", "touch", str(started)])
    assert "drive S1 is /dev/null now, and the command would write to /dev/other" in answer["error"]
    assert not started.exists()
