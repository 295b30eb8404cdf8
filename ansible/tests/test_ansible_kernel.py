"""Kernel settings over a fake tree: writes, remembered values, and the record of each outcome."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import bench_kernel
from ansible.module_utils.bench_kernel import Outcome, Setting, restore_values, run_settings
from ansible.module_utils.bench_state import State, StateError
from playbook_runs import fake_cpus

GOVERNORS = "devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"


def governor(root: Path, value: str | None = "performance") -> Setting:
    """Return the governor setting over a fake tree."""
    return Setting(
        "cpu-governor",
        "all CPUs",
        [str(root / GOVERNORS)],
        value=value,
        asked=value or "keep",
        choices_file="scaling_available_governors",
        absent="no frequency scaling",
    )


def no_memory(_setting: Setting, _outcomes: list[Outcome]) -> None:
    """Remember nothing."""


def apply_one(setting: Setting, **options: Any) -> dict[str, str]:
    """Apply a single setting and return its record."""
    return run_settings("cpu", [setting], no_memory, **{"write": True, **options}).records[0]


def test_a_governor_is_applied_to_every_cpu_and_read_back(tmp_path: Path) -> None:
    """All files get the value; the record counts what they held before."""
    fake_cpus(tmp_path, {"cpu0": "powersave", "cpu1": "powersave", "cpu12": "performance"})
    record = apply_one(governor(tmp_path))
    assert record == {
        "id": "cpu-governor", "role": "cpu", "subject": "all CPUs", "asked": "performance",
        "before": "performance x1, powersave x2", "applied": "performance", "read_back": "performance",
        "status": "applied", "detail": "",
    }  # fmt: skip
    assert {path.read_text() for path in tmp_path.glob(GOVERNORS)} == {"performance", "performance\n"}


def test_what_is_already_so_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second application makes no write call at all."""
    fake_cpus(tmp_path, {"cpu0": "performance"})
    monkeypatch.setattr(bench_kernel, "write_value", lambda path, value: pytest.fail(f"wrote {path}"))
    run = run_settings("cpu", [governor(tmp_path)], no_memory, write=True)
    assert (run.changed, run.records[0]["status"], run.records[0]["applied"]) == (False, "unchanged", "")


def test_a_missing_file_is_unsupported_with_the_given_reason(tmp_path: Path) -> None:
    """A machine without cpufreq is described, not failed."""
    record = apply_one(governor(tmp_path))
    assert (record["status"], record["detail"], record["read_back"]) == ("unsupported", "no frequency scaling", "")


def test_a_value_that_is_not_offered_is_unsupported_and_not_tried(tmp_path: Path) -> None:
    """The machine's own list decides, and stands in the reason."""
    fake_cpus(tmp_path, {"cpu0": "schedutil"}, offered="schedutil powersave")
    record = apply_one(governor(tmp_path))
    assert record["status"] == "unsupported"
    assert record["detail"] == "performance is not offered (offered: schedutil, powersave)"
    assert (tmp_path / "devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text() == "schedutil\n"


def test_a_value_that_does_not_stick_is_a_mismatch_naming_the_file(tmp_path: Path) -> None:
    """One CPU that swallows the write spoils the setting, and is named."""
    fake_cpus(tmp_path, {"cpu0": "powersave", "cpu1": "powersave"})
    deaf = tmp_path / "devices/system/cpu/cpu1/cpufreq/scaling_governor"
    deaf.unlink()
    deaf.symlink_to("/dev/null")
    record = apply_one(governor(tmp_path))
    assert record["status"] == "mismatch"
    assert record["detail"] == f"{deaf}: asked performance, reads nothing"
    assert record["read_back"] == "nothing x1, performance x1"


def test_a_write_that_the_kernel_rejects_is_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's errno stands in the detail; the value read afterwards is the old one."""
    fake_cpus(tmp_path, {"cpu0": "powersave"})

    def reject(path: str, value: str) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)

    monkeypatch.setattr(bench_kernel, "write_value", reject)
    record = apply_one(governor(tmp_path))
    assert (record["status"], record["read_back"], record["applied"]) == ("refused", "powersave", "")
    assert record["detail"] == "the kernel refused performance: Device or resource busy"


def test_the_fault_list_is_bounded(tmp_path: Path) -> None:
    """Hundreds of CPUs alike do not make a record of hundreds of names."""
    fake_cpus(tmp_path, {f"cpu{n}": "powersave" for n in range(20)} | {"cpu99": "performance"}, offered="powersave")
    detail = apply_one(governor(tmp_path))["detail"]
    assert detail.count("is not offered") == 5
    assert detail.endswith("and 15 more")


def test_nothing_asked_is_recorded_and_left_alone(tmp_path: Path) -> None:
    """`keep` reads and never writes."""
    fake_cpus(tmp_path, {"cpu0": "powersave"})
    record = apply_one(governor(tmp_path, value=None))
    assert (record["asked"], record["status"], record["read_back"]) == ("keep", "unchanged", "powersave")


@pytest.mark.parametrize(
    ("held", "status", "left"),
    [("65536", "applied", "1048576"), ("1048576", "unchanged", "1048576"), ("4194304", "unchanged", "4194304")],
)
def test_at_least_raises_but_never_lowers(tmp_path: Path, held: str, status: str, left: str) -> None:
    """A machine that allows more already is left as it is."""
    path = tmp_path / "aio-max-nr"
    path.write_text(held)
    setting = Setting("aio", "aio", [str(path)], value="1048576", asked=">= 1048576", at_least=True)
    assert apply_one(setting)["status"] == status
    assert path.read_text() == left


def test_a_bracketed_list_reads_as_its_chosen_value_and_limits_the_choice(tmp_path: Path) -> None:
    """The scheduler file is both the value and the list of values."""
    path = tmp_path / "scheduler"
    path.write_text("none [mq-deadline] kyber\n")
    offered = Setting("s", "vda", [str(path)], value="bfq", asked="bfq", bracketed=True)
    assert apply_one(offered)["detail"] == "bfq is not offered (offered: none, mq-deadline, kyber)"
    record = apply_one(Setting("s", "vda", [str(path)], value="none", asked="none", bracketed=True))
    assert (record["before"], record["read_back"], record["status"]) == ("mq-deadline", "none", "applied")


def test_verify_reports_a_deviation_without_writing(tmp_path: Path) -> None:
    """Reading back is only reading."""
    fake_cpus(tmp_path, {"cpu0": "powersave"})
    record = apply_one(governor(tmp_path), write=False)
    assert (record["status"], record["detail"]) == ("mismatch", "asked performance, found powersave")
    assert (tmp_path / "devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text() == "powersave\n"


def test_check_mode_tells_and_does_not_write(tmp_path: Path) -> None:
    """The prediction says that it is one."""
    fake_cpus(tmp_path, {"cpu0": "powersave"})
    run = run_settings("cpu", [governor(tmp_path)], no_memory, write=True, pretend=True)
    assert run.changed
    assert run.records[0]["detail"] == "check mode: performance would be written"
    assert (tmp_path / "devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text() == "powersave\n"


def test_a_value_moved_by_another_setting_is_remembered_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue's depth follows its scheduler (256 to 128 on a real kernel): its first value must be kept too."""
    scheduler, depth = tmp_path / "scheduler", tmp_path / "nr_requests"
    scheduler.write_text("none [mq-deadline]")
    depth.write_text("256")
    write = bench_kernel.write_value

    def with_side_effect(path: str, value: str) -> None:
        write(path, value)
        depth.write_text("128")

    monkeypatch.setattr(bench_kernel, "write_value", with_side_effect)
    remembered: dict[str, str] = {}
    settings = [
        Setting("queue-scheduler", "vda", [str(scheduler)], value="none", asked="none", bracketed=True),
        Setting("queue-requests", "vda", [str(depth)], asked="keep"),
    ]
    run = run_settings(
        "numa_irq", settings, lambda s, outcomes: remembered.update({s.id: outcomes[0].before}), write=True
    )
    assert remembered == {"queue-scheduler": "mq-deadline", "queue-requests": "256"}
    assert run.records[1]["detail"] == "was 256; moved when another setting was written"


def test_the_first_value_is_on_disk_before_the_first_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provision that dies in its first write has left the values that restore needs."""
    fake_cpus(tmp_path, {"cpu0": "powersave"})
    state = State(str(tmp_path / "tuning-before.json"), "boot-1")

    def remember(setting: Setting, outcomes: list[Outcome]) -> None:
        state.remember(setting.id, "cpu", setting.subject, False, {o.path: o.before for o in outcomes})
        state.save()

    def die(path: str, value: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_kernel, "write_value", die)
    with pytest.raises(KeyboardInterrupt):
        run_settings("cpu", [governor(tmp_path)], remember, write=True)
    saved = State(str(tmp_path / "tuning-before.json"), "boot-1").settings["cpu-governor"]
    assert list(saved["values"].values()) == ["powersave"]


def test_restore_puts_each_file_back_to_its_own_value(tmp_path: Path) -> None:
    """CPUs that differed before differ again."""
    fake_cpus(tmp_path, {"cpu0": "performance", "cpu1": "performance"})
    files = sorted(str(path) for path in tmp_path.glob(GOVERNORS))
    saved = {
        "bracketed": False,
        "subject": "all CPUs",
        "values": dict(zip(files, ["powersave", "performance"], strict=True)),
    }
    record, changed = restore_values("cpu", "cpu-governor", saved, pretend=False)
    assert (changed, record["status"]) == (True, "applied")
    assert [Path(path).read_text().strip() for path in files] == ["powersave", "performance"]


def test_restore_that_does_not_stick_is_told(tmp_path: Path) -> None:
    """A file that swallows the value is a mismatch, so that the playbook can fail on it."""
    deaf = tmp_path / "deaf"
    deaf.symlink_to("/dev/null")
    saved = {"bracketed": False, "subject": "x", "values": {str(deaf): "1"}}
    record, changed = restore_values("cpu", "x", saved, pretend=False)
    assert (changed, record["status"]) == (False, "mismatch")


def test_a_remembered_value_is_never_overwritten(tmp_path: Path) -> None:
    """The second provision's `before` is the bench's own value, not the machine's."""
    path = str(tmp_path / "state.json")
    first = State(path, "boot-1")
    first.remember("aio", "numa_irq", "fs.aio-max-nr", False, {"/p": "65536"})
    first.save()
    second = State(path, "boot-1")
    assert not second.remember("aio", "numa_irq", "fs.aio-max-nr", False, {"/p": "1048576"})
    assert second.settings["aio"]["values"] == {"/p": "65536"}


def test_a_reboot_makes_the_memory_void(tmp_path: Path) -> None:
    """All settings are the running kernel's, so the reboot has undone them."""
    path = str(tmp_path / "state.json")
    before = State(path, "boot-1")
    before.remember("aio", "numa_irq", "fs.aio-max-nr", False, {"/p": "65536"})
    before.save()
    assert State(path, "boot-2").settings == {}


def test_the_last_setting_forgotten_removes_the_file(tmp_path: Path) -> None:
    """With nothing left to restore, no file is left behind."""
    path = tmp_path / "state.json"
    state = State(str(path), "boot-1")
    state.remember("aio", "numa_irq", "aio", False, {"/p": "1"})
    state.save()
    state.forget("aio")
    state.save()
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a readable state file"),
        (json.dumps({"schema_version": 9, "boot_id": "b", "settings": {}}), "schema_version is 9"),
        ("[]", "not a readable state file"),
    ],
)
def test_a_damaged_memory_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    """Overwriting it would lose the machine's first values for good."""
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(StateError, match=message) as caught:
        State(str(path), "boot-1")
    assert str(path) in str(caught.value)
