"""The playbooks, run for real against this machine with fake kernel trees, as rig runs them."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from loop_drives import LoopDrives, can_use_loop_devices, mounts_of, signatures
from playbook_runs import Bench, fake_cpus

from daq_bench.rig.candidate.provision import PLAYS_ON


def governors(bench: Bench) -> list[str]:
    """Return each fake CPU's governor."""
    files = sorted(bench.sysfs.glob("devices/system/cpu/cpu*/cpufreq/scaling_governor"))
    return [path.read_text().strip() for path in files]


def test_a_machine_that_cannot_be_a_candidate_is_refused_before_its_firmware_is_asked(bench: Bench) -> None:
    """BIOS settings, and a reboot for them, come after that: nothing is there of the bench."""
    foreign = bytearray(Path("/bin/sh").resolve().read_bytes())
    foreign[18:20] = (21).to_bytes(2, "little")  # e_machine: ppc64le
    (bench.sources / "daqwriter").write_bytes(foreign)
    fake_cpus(bench.sysfs, {"cpu0": "powersave"})
    run = bench.run("provision.yml")
    assert run.code != 0
    assert (
        f"this-machine cannot be a candidate: daqwriter: built for ppc64le and the candidate is {os.uname().machine}."
        in run.text
    )
    assert "Nothing was changed" in run.text
    assert "TASK [bios" not in run.output
    assert (run.changed, governors(bench)) == (0, ["powersave"])
    assert not any(path.exists() for path in (bench.state, bench.facts, bench.install))


def test_provision_verify_and_restore_one_candidate(bench: Bench) -> None:
    """Applied once, changed=0 the second time, verified, a drift noticed, and put back exactly."""
    fake_cpus(bench.sysfs, {"cpu0": "powersave", "cpu1": "performance"})

    check = bench.run("provision.yml", "--check")
    assert check.code == 0, check.output
    assert governors(bench) == ["powersave", "performance"]
    assert not any(path.exists() for path in (bench.state, bench.facts, bench.install))

    first = bench.run("provision.yml")
    assert first.code == 0, first.output
    assert first.changed > 0
    records = bench.records()
    assert governors(bench) == ["performance", "performance"]
    assert (records["cpu-governor"]["status"], records["cpu-governor"]["before"]) == (
        "applied",
        "performance x1, powersave x1",
    )
    assert (bench.sysctl / "fs/aio-max-nr").read_text() == "1048576"
    assert (records["aio-max-nr"]["status"], records["aio-max-nr"]["asked"]) == ("applied", ">= 1048576")
    assert (bench.queue / "scheduler").read_text() == "none"
    assert records["target-numa-node"]["read_back"] == "1"
    assert records["bios-power-profile"]["status"] == records["fan-mode"]["status"] == "unsupported"
    assert "bench_candidate.bmc" in records["bios-power-profile"]["detail"]
    assert all(isinstance(value, str) for record in records.values() for value in record.values())
    versions = bench.document("versions.json")
    assert (versions["daqwriter"], versions["telemetry_agent"]) == ("1.2.3", "1.2.3")
    assert {"fio", "ansible-core", "kernel"} <= set(versions)
    host = bench.document("host.json")
    assert host["cpus"] == os.cpu_count()
    assert host["target"]["device"]["name"] == "fake0"
    assert bench.document("smart-before.json")["devices"][0]["status"] == "unsupported"
    memory = (bench.state / "tuning-before.json").read_bytes()

    second = bench.run("provision.yml")
    assert (second.code, second.changed) == (0, 0), second.output
    assert bench.records()["cpu-governor"]["status"] == "unchanged"
    assert (bench.state / "tuning-before.json").read_bytes() == memory

    (bench.sysfs / "devices/system/cpu/cpu1/cpufreq/scaling_governor").write_text("powersave\n")
    verify = bench.run("verify.yml", bench_facts_tuning_file="tuning-after.json")
    assert (verify.code, verify.changed) == (0, 0), verify.output
    after = bench.records("tuning-after.json")
    assert (after["cpu-governor"]["status"], after["aio-max-nr"]["status"]) == ("mismatch", "unchanged")
    assert "cpu1" in after["cpu-governor"]["detail"]
    assert after["aio-max-nr"]["before"] == "65536"
    assert (bench.facts / "smart-after.json").exists()

    restore = bench.run("restore.yml")
    assert restore.code == 0, restore.output
    assert governors(bench) == ["powersave", "performance"]
    assert (bench.sysctl / "fs/aio-max-nr").read_text() == "65536"
    assert (bench.queue / "scheduler").read_text() == "mq-deadline"
    assert not (bench.state / "tuning-before.json").exists()
    assert not bench.install.exists()  # it was not there before either


def test_each_way_of_not_getting_a_setting_is_recorded_and_the_play_goes_on(bench: Bench) -> None:
    """Swallowed, not offered and absent are told apart; the run is judged later, not stopped here."""
    fake_cpus(bench.sysfs, {"cpu0": "powersave"})
    governor = bench.sysfs / "devices/system/cpu/cpu0/cpufreq/scaling_governor"
    governor.unlink()
    governor.symlink_to("/dev/null")
    (bench.queue / "scheduler").write_text("[mq-deadline] kyber\n")
    (bench.sysctl / "fs/aio-max-nr").unlink()
    run = bench.run("provision.yml")
    assert run.code == 0, run.output
    records = bench.records()
    assert records["cpu-governor"]["status"] == "mismatch"
    assert records["cpu-governor"]["detail"] == "asked performance, reads nothing"
    assert records["queue-scheduler"]["status"] == "unsupported"
    assert records["queue-scheduler"]["detail"] == "none is not offered (offered: mq-deadline, kyber)"
    assert records["aio-max-nr"]["status"] == "unsupported"
    restore = bench.run("restore.yml")
    assert restore.code == 0, restore.output  # it held nothing before, and holds nothing again


def test_restore_fails_and_remembers_when_a_value_does_not_go_back(bench: Bench) -> None:
    """A machine is not called restored while a setting differs."""
    deaf = bench.root / "deaf"
    deaf.symlink_to("/dev/null")
    saved = {"role": "cpu", "subject": "all CPUs", "bracketed": False, "values": {str(deaf): "powersave"}}
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    bench.state.mkdir()
    memory = bench.state / "tuning-before.json"
    memory.write_text(json.dumps({"schema_version": 1, "boot_id": boot_id, "settings": {"cpu-governor": saved}}))
    run = bench.run("restore.yml")
    assert run.code != 0
    assert "not restored: mismatch cpu-governor" in run.text
    assert "run restore.yml again" in run.text
    assert memory.exists()


# Real kernel files, but none that a qualification running on this machine at the same time depends on.
KERNEL_QUEUE = Path("/sys/block/loop7")
KERNEL_LIMIT = Path("/proc/sys/fs/inotify/max_queued_events")


@pytest.mark.skipif(
    os.geteuid() != 0 or not (KERNEL_QUEUE / "queue/scheduler").exists(),
    reason="writes real kernel settings: needs root and an idle loop device",
)
def test_real_kernel_settings_are_applied_and_put_back_exactly(bench: Bench) -> None:
    """The kernel itself takes, reports and gives back the values; the queue's depth follows its scheduler."""
    bench.link_to_kernel(KERNEL_QUEUE, KERNEL_LIMIT)
    files = [KERNEL_QUEUE / "queue/scheduler", KERNEL_QUEUE / "queue/nr_requests", KERNEL_LIMIT]
    limit = KERNEL_LIMIT.read_text()
    KERNEL_LIMIT.write_text("16384\n")  # a test that was killed may have left another value
    before = [path.read_text() for path in files]
    offered = before[0].replace("[", "").replace("]", "").split()
    wanted = next(name for name in ("mq-deadline", "kyber", "none") if name in offered and f"[{name}]" not in before[0])
    bench.tuning["queue_scheduler"] = wanted
    try:
        run = bench.run("provision.yml")
        records = bench.records()
        during = [path.read_text() for path in files]
    finally:
        restored = bench.run("restore.yml")
        after = [path.read_text() for path in files]
        KERNEL_LIMIT.write_text(limit)
    assert run.code == 0, run.output
    assert records["queue-scheduler"]["status"] == records["aio-max-nr"]["status"] == "applied"
    assert f"[{wanted}]" in during[0]
    assert int(during[2]) == 1048576
    assert restored.code == 0, restored.output
    assert after == before


@pytest.mark.parametrize(
    ("tuning", "variables", "message"),
    [
        ({"cpu_governor": "turbo"}, {}, "value of cpu_governor must be one of: performance, powersave"),
        ({"aio_max_nr": "many"}, {}, "numa_irq_aio_max_nr"),
        ({"cpu_governer": "performance"}, {}, "bench_candidate.tuning.cpu_governer is unknown; known: cpu_governor"),
        ({}, {"bench_facts_dir": None}, "bench_facts_dir is not set; it must be an absolute path"),
        ({}, {"bench_state_dir": "build/state"}, "bench_state_dir is build/state; it must be an absolute path"),
    ],
)
def test_a_wrong_variable_is_refused_before_the_candidate_is_touched(
    bench: Bench, tuning: dict[str, object], variables: dict[str, object], message: str
) -> None:
    """The message names the variable and the remedy; nothing is written."""
    bench.tuning.update(tuning)
    run = bench.run("provision.yml", **variables)
    assert run.code != 0
    assert message in run.text
    assert "Describe the candidate" not in run.text
    assert not any(path.exists() for path in (bench.state, bench.facts, bench.install))


def test_an_inventory_without_candidates_is_refused(bench: Bench) -> None:
    """Ansible itself would succeed without having done anything."""
    empty = bench.root / "empty.yml"
    empty.write_text("all: {hosts: {}}\n")
    bench.inventory = lambda: empty  # type: ignore[method-assign]
    run = bench.run("provision.yml")
    assert run.code != 0
    assert "the selected hosts (localhost) are not in the inventory's group `candidates`" in run.text


def test_a_host_that_is_no_candidate_is_refused(bench: Bench) -> None:
    """--limit to some other machine of the inventory must not look like success either."""
    document = json.loads(bench.inventory().read_text())
    document["all"]["hosts"] = {"other": {"ansible_connection": "local"}}
    mixed = bench.root / "mixed.yml"
    mixed.write_text(json.dumps(document))
    bench.inventory = lambda: mixed  # type: ignore[method-assign]
    run = bench.run("provision.yml", "--limit=other")
    assert run.code != 0
    assert "the selected hosts (other) are not in" in run.text


def test_a_target_directory_that_is_not_there_is_refused_by_name(bench: Bench) -> None:
    """The guard comes before the first setting."""
    fake_cpus(bench.sysfs, {"cpu0": "powersave"})
    missing = str(bench.root / "nowhere")
    run = bench.run("provision.yml", bench_target_directory=missing)
    assert run.code != 0
    assert f"{missing} does not exist" in run.text
    assert governors(bench) == ["powersave"]


def test_a_target_that_is_gone_after_the_load_is_a_mismatch_and_before_it_an_error(bench: Bench) -> None:
    """The record says so; everything else is read back, and the drive of the folder above is not taken for the target's."""
    fake_cpus(bench.sysfs, {"cpu0": "performance"})
    gone = str(bench.root / "gone")
    before = bench.run("verify.yml", bench_target_directory=gone)
    assert before.code != 0
    assert f"{gone} does not exist" in before.text
    after = bench.run(
        "verify.yml", bench_target_directory=gone, bench_after_load=True, bench_facts_tuning_file="tuning-after.json"
    )
    assert (after.code, after.changed) == (0, 0), after.output
    records = bench.records("tuning-after.json")
    assert (records["storage-target"]["status"], records["storage-target"]["read_back"]) == (
        "mismatch", f"{gone} does not exist",
    )  # fmt: skip
    assert records["cpu-governor"]["read_back"] == "performance"
    assert bench.document("smart-after.json")["devices"] == []


@pytest.mark.skipif(not can_use_loop_devices(), reason="makes loop devices and file systems: needs root and xfsprogs")
def test_a_target_is_built_on_its_drive_and_given_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told in check mode, built once, recorded, verified, and undone by restore; the chosen one of several targets."""
    directory = bench.root / "mnt/reference"
    bench.sysfs = Path("/sys")  # a real drive has its queue in the real tree; nothing of it is asked to change
    bench.tuning = {}
    with LoopDrives(bench.root) as drives:
        monkeypatch.setenv("PATH", drives.environment()["PATH"])
        path = drives.add("LOOP1")
        storage = {"drives": ["LOOP1"], "destroy": True, "purge": "discard", "filesystem": "xfs"}
        bench.targets = {"reference": {"kind": "filesystem", "directory": str(directory), "storage": storage}}
        variables = {
            "bench_target": "reference",
            "bench_target_directory": str(directory),
            "bench_sysfs_root": "/sys",
        }
        check = bench.run("provision.yml", "--check", **variables)
        assert check.code == 0, check.output
        assert "would destroy drive LOOP1 (Loop Drive" in check.text
        assert signatures(path) == []

        first = bench.run("provision.yml", **variables)
        assert first.code == 0, first.output
        records = bench.records()
        assert records["storage-filesystem"]["status"] == "applied"
        assert bench.document("host.json")["target"]["filesystem"] == "xfs"
        second = bench.run("provision.yml", **variables)
        assert (second.code, second.changed) == (0, 0), second.output

        restore = bench.run("restore.yml", **variables)
        assert restore.code == 0, restore.output
        assert (mounts_of(path), signatures(path), directory.exists()) == ([], [], False)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ({"drives": ["S1"], "purge": "shred"}, "value of purge must be one of: none, discard, format, sanitize"),
        ({"destroy": True}, "missing required arguments: drives"),
        ({"drives": ["S1"], "destory": True}, "destory"),
    ],
)
def test_a_wrong_storage_block_is_refused_before_the_candidate_is_touched(
    bench: Bench, storage: dict[str, object], message: str
) -> None:
    """A misspelt consent must not read as none, and an unknown purge not as some."""
    bench.targets = {"reference": {"kind": "filesystem", "storage": storage}}
    run = bench.run("provision.yml", bench_target="reference")
    assert run.code != 0
    assert message in run.text
    assert "Describe the candidate" not in run.text


@pytest.mark.parametrize("playbook", ["verify.yml", "restore.yml"])
def test_a_candidate_on_which_no_command_returns_is_given_up(bench: Bench, tmp_path: Path, playbook: str) -> None:
    """Connected, and hung: its restoration took up the four hours of a whole playbook. The bench ends the ssh that is left then."""
    client, ours = tmp_path / "ssh", tmp_path / "clients"
    client.write_text(f"#!/bin/sh\necho $$ >> {ours}\nexec sleep 600\n")
    client.chmod(0o755)
    bench.environment[PLAYS_ON] = mark = str(tmp_path)
    over_ssh = {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_ssh_executable": str(client)}
    try:
        run = bench.run(playbook, **over_ssh, bench_answer_s=3)
        assert run.code != 0 and "Timed out after 3 second(s)" in run.text, run.output
    finally:
        for pid in map(int, ours.read_text().split()):
            with suppress(ProcessLookupError):
                assert f"{PLAYS_ON}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
                os.kill(pid, signal.SIGKILL)
