"""Idle states, isolated CPUs, interrupts and PCIe links: over fake kernel trees, and systemd by its own commands."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bench_host_facts
import bench_kernel_settings as module
import bench_placement
import pytest
from ansible.errors import AnsibleFilterError
from ansible.module_utils import bench_kernel, bench_pci, bench_systemd
from ansible.module_utils.bench_cpus import cpus_left, format_cpus, parse_cpus
from ansible.module_utils.bench_kernel import Outcome, Setting, run_settings
from ansible.module_utils.bench_state import State


def no_memory(_setting: Setting, _outcomes: list[Outcome]) -> None:
    """Remember nothing."""


def record_of(setting: Setting, **options: Any) -> dict[str, str]:
    """Apply one setting and return its record."""
    return run_settings("cpu", [setting], no_memory, **{"write": True, **options}).records[0]


@pytest.mark.parametrize(
    ("text", "cpus", "again"),
    [("0-3,8", {0, 1, 2, 3, 8}, "0-3,8"), ("1 0", {0, 1}, "0-1"), ("", set(), ""), ("5", {5}, "5")],
)
def test_cpu_lists_of_the_kernel_and_of_systemd_are_read(text: str, cpus: set[int], again: str) -> None:
    """Commas or blanks; written back in the shortest form."""
    assert parse_cpus(text) == cpus
    assert format_cpus(cpus) == again


@pytest.mark.parametrize(
    ("isolated", "message"),
    [
        ("2-9", r"has no CPU 8-9 online \(online: 0-7\)"),
        ("0-7", "leaves the system no CPU"),
        ("2-x", "'2-x' is no list of CPUs"),
        ("7-2", "runs backwards"),
        ("", "names no CPU"),
    ],
)
def test_cpus_that_cannot_be_isolated_are_refused(isolated: str, message: str) -> None:
    """The list names missing CPUs, all CPUs, none, or is no list."""
    with pytest.raises(ValueError, match=message):
        cpus_left(isolated, "0-7")


def test_the_refusal_names_the_setting(tmp_path: Path) -> None:
    """The user can then find the line in the inventory."""
    online = tmp_path / "devices/system/cpu/online"
    online.parent.mkdir(parents=True)
    online.write_text("0-1\n")
    options = dict.fromkeys(module.suboptions(), "") | {
        "id": "cpu-isolated", "root": "systemd", "paths": ["property:system.slice:AllowedCPUs"], "value": "1",
        "other_cpus": True, "only_above": None,
    }  # fmt: skip
    roots = {"sysfs": str(tmp_path), "sysctl": "", "procfs": ""}
    setting = module.setting_from(options, roots)
    assert (setting.value, setting.paths) == ("0", ["systemd:property:system.slice:AllowedCPUs"])
    with pytest.raises(ValueError, match="cpu-isolated is 0-1: that leaves the system no CPU"):
        module.setting_from({**options, "value": "0-1"}, roots)


def idle_states(root: Path, latencies: list[int]) -> list[Path]:
    """Lay out two CPUs with idle states of these exit latencies, all enabled."""
    files = []
    for cpu in ("cpu0", "cpu1"):
        for number, latency in enumerate(latencies):
            folder = root / cpu / "cpuidle" / f"state{number}"
            folder.mkdir(parents=True)
            (folder / "latency").write_text(f"{latency}\n")
            (folder / "disable").write_text("0\n")
            files.append(folder / "disable")
    return files


def idle_setting(root: Path, limit: int) -> Setting:
    """Return the setting that disables the states above a limit."""
    return Setting(
        "cpu-idle-states", "idle states", [str(root / "cpu*/cpuidle/state*/disable")], value="1", asked="1",
        only_above=limit, only_above_file="latency", absent="no idle states",
    )  # fmt: skip


def test_idle_states_above_the_latency_are_disabled_and_no_others(tmp_path: Path) -> None:
    """A state of exactly the limit stays."""
    files = idle_states(tmp_path, [0, 2, 133])
    record = record_of(idle_setting(tmp_path, 2))
    assert (record["status"], record["before"], record["read_back"]) == ("applied", "0", "1")
    assert [path.read_text().strip() for path in files] == ["0", "0", "1"] * 2


def test_no_idle_state_above_the_latency_is_as_asked(tmp_path: Path) -> None:
    """A machine without idle states is a different case."""
    idle_states(tmp_path, [0, 2])
    record = record_of(idle_setting(tmp_path, 2))
    assert (record["status"], record["detail"]) == (
        "unchanged",
        "none has a latency above 2, so there is nothing to set",
    )
    assert record_of(idle_setting(tmp_path / "nothing", 2))["status"] == "unsupported"


def irq(root: Path, number: int, allowed: str, effective: str) -> Path:
    """Lay out one interrupt."""
    folder = root / f"irq/{number}"
    folder.mkdir(parents=True)
    (folder / "smp_affinity_list").write_text(f"{allowed}\n")
    (folder / "effective_affinity_list").write_text(f"{effective}\n")
    return folder / "smp_affinity_list"


def irq_setting(root: Path, cpus: str) -> Setting:
    """Return the setting that puts all interrupts on some CPUs."""
    return Setting(
        "nvme-irq-affinity-S1", "interrupts", [str(root / "irq/*/smp_affinity_list")], value=cpus, asked="local-node",
        cpus_within=True, effective_file="effective_affinity_list", absent="none",
    )  # fmt: skip


def test_interrupts_are_put_on_the_node_and_those_already_there_are_left(tmp_path: Path) -> None:
    """One CPU of the node is as good as all of them."""
    first, second = irq(tmp_path, 30, "0-7", "5"), irq(tmp_path, 31, "2", "2")
    record = record_of(irq_setting(tmp_path, "0-3"))
    assert (record["status"], record["before"], record["applied"]) == ("applied", "0-7", "0-3")
    assert (first.read_text(), second.read_text()) == ("0-3", "2\n")
    assert record["detail"] == "in effect on CPU 2,5"


@pytest.mark.parametrize(("effective", "status"), [("1", "unchanged"), ("6", "refused")])
def test_a_managed_interrupt_counts_by_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effective: str, status: str
) -> None:
    """The kernel answers EIO; on the node the setting is as asked, elsewhere it is refused, and the record says where."""
    irq(tmp_path, 30, "0-7", effective)

    def refuse(path: str, value: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(bench_kernel, "write_value", refuse)
    record = record_of(irq_setting(tmp_path, "0-3"))
    assert record["status"] == status
    assert "manage" in record["detail"]
    assert f"in effect on CPU {effective}" in record["detail"]
    assert record_of(irq_setting(tmp_path, "0-3"), write=False)["status"] == (
        "unchanged" if status == "unchanged" else "mismatch"
    )


@pytest.mark.parametrize(("effective", "status"), [("1", "unchanged"), ("6", "refused")])
def test_cpus_without_a_free_vector_are_not_called_managed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effective: str, status: str
) -> None:
    irq(tmp_path, 50, "0-7", effective)

    def refuse(path: str, value: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(bench_kernel, "write_value", refuse)
    record = record_of(irq_setting(tmp_path, "0-3"))
    assert record["status"] == status
    assert "manage" not in record["detail"] and "no " in record["detail"] and "vector is left" in record["detail"]


def test_a_setting_that_an_earlier_one_moved_is_written_after_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue's depth is as asked until the scheduler changes it."""
    scheduler, depth = tmp_path / "scheduler", tmp_path / "nr_requests"
    scheduler.write_text("none [mq-deadline]")
    depth.write_text("64")
    write = bench_kernel.write_value

    def with_side_effect(path: str, value: str) -> None:
        write(path, value)
        if path == str(scheduler):
            depth.write_text("1023")

    monkeypatch.setattr(bench_kernel, "write_value", with_side_effect)
    settings = [
        Setting("queue-scheduler", "sda", [str(scheduler)], value="none", asked="none", bracketed=True),
        Setting("queue-requests", "sda", [str(depth)], value="64", asked="64"),
    ]
    records = run_settings("numa_irq", settings, no_memory, write=True).records
    assert depth.read_text() == "64"
    assert (records[1]["status"], records[1]["read_back"]) == ("applied", "64")


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a machine run by systemd: a systemctl that keeps properties in files, and logs its arguments."""
    store, calls = tmp_path / "store", tmp_path / "calls"
    store.mkdir()
    calls.touch()
    script = tmp_path / "bin/systemctl"
    script.parent.mkdir()
    script.write_text(
        f"""#!/bin/sh
echo "$@" >> {calls}
case $1 in
show) test ! -f {store}/$5.$3 || cat {store}/$5.$3;;
set-property) echo "${{4#*=}}" > {store}/$3.${{4%%=*}};;
stop) echo "Unit $2 not loaded." >&2; exit 5;;
esac
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    monkeypatch.setattr(bench_systemd, "CONTROLLERS", str(tmp_path / "cgroup.controllers"))
    monkeypatch.setattr(bench_systemd, "BOOTED_BY_SYSTEMD", str(tmp_path))
    return calls


SLICES = ["system.slice", "user.slice", "init.scope"]


def isolation(left: str) -> Setting:
    """Return the setting that keeps the system on some CPUs."""
    paths = [f"systemd:property:{unit}:AllowedCPUs" for unit in SLICES]
    return Setting(
        "cpu-isolated", "slices", paths, value=left, asked="all but 2-3", absent="needs systemd and cgroup v2"
    )


def test_the_system_is_kept_off_cpus_until_the_reboot_and_given_them_back(systemd: Path, tmp_path: Path) -> None:
    """By systemctl set-property --runtime, and back by an empty list; a second time nothing is told to systemd."""
    state = State(str(tmp_path / "state.json"), "boot")
    module.apply_settings("cpu", [isolation("0-1")], state, pretend=False)
    first = systemd.read_text()
    assert first.count("set-property --runtime") == 3
    assert "set-property --runtime user.slice AllowedCPUs=0-1\n" in first
    again = module.apply_settings("cpu", [isolation("0-1")], state, pretend=False)
    assert (again.changed, again.records[0]["read_back"]) == (False, "0-1")
    restored = module.restore_settings("cpu", state, pretend=False)
    assert (restored.records[0]["status"], restored.records[0]["read_back"]) == ("applied", "all")
    assert systemd.read_text().endswith("show --property AllowedCPUs --value user.slice\n")
    assert "set-property --runtime init.scope AllowedCPUs=\n" in systemd.read_text()
    assert state.settings == {}


def test_without_systemd_or_cgroup_v2_isolation_is_unsupported(
    systemd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record says so, and nothing is tried."""
    (tmp_path / "cgroup.controllers").write_text("cpu io\n")
    assert record_of(isolation("0"))["status"] == "unsupported"
    monkeypatch.setattr(bench_systemd, "BOOTED_BY_SYSTEMD", str(tmp_path / "nothing"))
    assert record_of(isolation("0"))["detail"] == "needs systemd and cgroup v2"
    assert systemd.read_text() == ""


def test_a_service_is_told_by_its_process_and_a_stop_that_fails_is_refused(
    systemd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that systemd did not start cannot be stopped by it, and its words stand in the record."""
    setting = Setting("irqbalance", "irqbalance", ["systemd:service:irqbalance"], value="stopped", asked="stopped")
    assert bench_systemd.read("systemd:service:no-such-process") == "stopped"
    monkeypatch.setattr(bench_systemd, "runs", lambda name: True)
    record = record_of(setting)
    assert (record["status"], record["read_back"]) == ("refused", "running")
    assert "Unit irqbalance.service not loaded." in record["detail"]
    monkeypatch.setattr(bench_systemd, "runs", lambda name: False)
    assert record_of(setting)["status"] == "unchanged"
    assert systemd.read_text() == "stop irqbalance.service\n"


def test_a_daemon_that_would_undo_the_tuning_is_stopped_and_started_again(systemd: Path, tmp_path: Path) -> None:
    """tlp has no process, tuned is not there, and what was stopped already stays so; nothing is enabled or disabled."""
    daemons = Setting(
        "power-daemons", "x", [f"systemd:unit:{name}" for name in ("tlp", "tuned", "power-profiles-daemon")],
        value="stopped", asked="stopped",
    )  # fmt: skip
    store = tmp_path / "store"
    script = tmp_path / "bin/systemctl"
    script.write_text(
        script.read_text().replace('stop) echo "Unit $2 not loaded." >&2; exit 5;;', f'stop) echo inactive > {store}/$2.ActiveState;;\n'
        f"start) echo active > {store}/$2.ActiveState;;")
    )  # fmt: skip
    (store / "tlp.service.ActiveState").write_text("active\n")
    (store / "tuned.service.ActiveState").write_text("inactive\n")
    (store / "power-profiles-daemon.service.ActiveState").write_text("failed\n")
    state = State(str(tmp_path / "state.json"), "boot")
    applied = module.apply_settings("cpu_daemons", [daemons], state, pretend=False)
    assert applied.records[0]["before"] == "running x1, stopped x2"
    assert (applied.records[0]["status"], applied.records[0]["read_back"]) == ("applied", "stopped")
    again = module.apply_settings("cpu_daemons", [daemons], state, pretend=False)
    assert (again.changed, again.records[0]["status"]) == (False, "unchanged")
    restored = module.restore_settings("cpu_daemons", state, pretend=False)
    assert restored.records[0]["status"] == "applied"
    assert (store / "tlp.service.ActiveState").read_text() == "active\n"
    told = [line for line in systemd.read_text().splitlines() if not line.startswith("show ")]
    assert told == ["stop tlp.service", "start tlp.service"]
    assert state.settings == {}


def test_a_daemon_is_stopped_before_its_settings_are_read_and_started_after_they_are_back(
    systemd: Path, tmp_path: Path
) -> None:
    """One call. tuned puts back what it had changed when it is stopped: that value is the machine's own, and the one to restore."""
    store, governor, script = tmp_path / "store", tmp_path / "sys/governor", tmp_path / "bin/systemctl"
    script.write_text(
        script.read_text().replace(
            'stop) echo "Unit $2 not loaded." >&2; exit 5;;',
            f"stop) echo inactive > {store}/$2.ActiveState; echo powersave > {governor};;\n"
            f"start) cp {governor} {store}/at-start; echo active > {store}/$2.ActiveState;;",
        )
    )
    (store / "tuned.service.ActiveState").write_text("active\n")
    governor.parent.mkdir()
    governor.write_text("tuneds-own\n")
    setting = {name: one.get("default") for name, one in module.suboptions().items()}
    params: dict[str, Any] = {
        **{"role": "cpu", "state_file": str(tmp_path / "state/tuning-before.json"), "sysfs_root": str(tmp_path / "sys")},
        **{"sysctl_root": "/nowhere", "procfs_root": "/nowhere"},
        "daemons": [
            setting | {"id": "power-daemons", "subject": "x", "root": "systemd", "paths": ["unit:tuned"], "value": "stopped", "absent": "-"}
        ],
        "settings": [
            setting | {"id": "cpu-governor", "subject": "y", "paths": ["governor"], "value": "performance", "absent": "-"}
        ],
    }  # fmt: skip
    applied = module.run_mode(SimpleNamespace(params={**params, "mode": "apply"}, check_mode=False))
    assert [(one["id"], one["role"], one["before"], one["read_back"]) for one in applied.records] == [
        ("power-daemons", "cpu_daemons", "running", "stopped"),
        ("cpu-governor", "cpu", "powersave", "performance"),
    ]
    verified = module.run_mode(SimpleNamespace(params={**params, "mode": "verify"}, check_mode=False))
    assert [(one["role"], one["status"], one["before"]) for one in verified.records] == [
        ("cpu_daemons", "unchanged", "running"),
        ("cpu", "unchanged", "powersave"),
    ]
    asked = {**params, "mode": "restore", "daemons": [], "settings": []}
    restored = module.run_mode(SimpleNamespace(params=asked, check_mode=False))
    assert {one["role"]: one["status"] for one in restored.records} == {"cpu": "applied", "cpu_daemons": "applied"}
    assert (store / "at-start").read_text().strip() == governor.read_text().strip() == "powersave"
    assert not (tmp_path / "state/tuning-before.json").exists()


def test_where_systemd_does_not_run_no_daemon_does(
    systemd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container without it: nothing to stop, and nothing that would keep a run from its verdict."""
    monkeypatch.setattr(bench_systemd, "BOOTED_BY_SYSTEMD", str(tmp_path / "nothing"))
    record = record_of(Setting("power-daemons", "x", ["systemd:unit:tuned"], value="stopped", asked="stopped"))
    assert (record["status"], record["read_back"], systemd.read_text()) == ("unchanged", "stopped", "")


def pci_tree(root: Path, links: list[tuple[str, str, str, str]]) -> Path:
    """Lay out PCI devices from the root port down, each with its links, and return the last one's block device."""
    folder = root / "devices/pci0000:40"
    for number, (speed, width, speed_max, width_max) in enumerate(links):
        folder = folder / f"0000:4{number}:00.0"
        folder.mkdir(parents=True)
        for name, text in zip(
            ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"),
            (speed, width, speed_max, width_max),
            strict=True,
        ):
            (folder / name).write_text(f"{text}\n")
    (folder / "numa_node").write_text("1\n")
    for interrupt in ("36", "9", "101"):
        (folder / "msi_irqs").mkdir(exist_ok=True)
        (folder / "msi_irqs" / interrupt).touch()
    (folder / "nvme/nvme0/nvme0n1").mkdir(parents=True)
    for node, cpus in (("node0", "0-3"), ("node1", "4-7")):
        (root / "devices/system/node" / node).mkdir(parents=True)
        (root / "devices/system/node" / node / "cpulist").write_text(f"{cpus}\n")
    return folder / "nvme/nvme0/nvme0n1"


GEN4, GEN3 = "16.0 GT/s PCIe", "8.0 GT/s PCIe"


def placed(root: Path, links: list[tuple[str, str, str, str]]) -> dict[str, Any]:
    """Describe a drive below these links."""
    directory = pci_tree(root, links)
    return bench_pci.placed({"name": "nvme0n1", "serial": "S1", "numa_node": None}, str(directory), str(root))


def test_a_drive_is_placed_with_its_interrupts_and_its_nodes_cpus(tmp_path: Path) -> None:
    """The interrupts come in numeric order, from the drive's own PCI device and not from the port above."""
    drive = placed(tmp_path, [(GEN4, "16", GEN4, "16"), (GEN4, "4", GEN4, "4")])
    assert (drive["numa_node"], drive["node_cpus"], drive["pci"]["interrupts"]) == (1, "4-7", [9, 36, 101])
    assert [link["address"] for link in drive["pci"]["links"]] == ["0000:41:00.0", "0000:40:00.0"]
    assert bench_placement.writer_cpus_record([drive])["read_back"] == "4-7"


def test_where_one_node_is_left_only_its_own_cpus_are_near(tmp_path: Path) -> None:
    """Node 0 offline, as a Dell R630 showed it: a drive at node 1 keeps its CPUs, one at node 0 none, one without a node all."""
    pci_tree(tmp_path, [(GEN4, "4", GEN4, "4")])
    nodes = tmp_path / "devices/system/node"
    (nodes / "node0/cpulist").unlink()
    (nodes / "node0").rmdir()
    (tmp_path / "devices/system/cpu").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/online").write_text("2-7\n")
    found = [bench_pci.node_cpus(str(tmp_path), node) for node in (1, 0, None)]
    assert found == ["4-7", "", "2-7"]
    (nodes / "node1/cpulist").unlink()
    (nodes / "node1").rmdir()
    assert bench_pci.node_cpus(str(tmp_path), 0) == "2-7", "a kernel without NUMA support"


def test_a_drive_of_several_paths_is_placed_by_its_controller(tmp_path: Path) -> None:
    """Its block device is a virtual one, which hangs nowhere."""
    controller = pci_tree(tmp_path, [(GEN4, "4", GEN4, "4")]).parent
    head = tmp_path / "devices/virtual/nvme-subsystem/nvme-subsys0"
    (head / "nvme0n1").mkdir(parents=True)
    (head / "nvme0").symlink_to(controller)
    (head / "nvme0n1/device").symlink_to(head)
    drive = bench_pci.placed({"name": "nvme0n1", "numa_node": None}, str(head / "nvme0n1"), str(tmp_path))
    assert (drive["numa_node"], drive["pci"]["address"]) == (1, "0000:40:00.0")
    # The interrupts of a second port go to the same CPUs, unless it is on another node.
    for function, node, interrupt in (("0000:50:00.0", "1", "55"), ("0000:60:00.0", "0", "66")):
        port = tmp_path / "devices/pci0000:3f" / function
        (port / "msi_irqs").mkdir(parents=True)
        (port / "msi_irqs" / interrupt).touch()
        (port / "numa_node").write_text(f"{node}\n")
        (port / f"nvme/nvme{interrupt}").mkdir(parents=True)
        (head / f"nvme{interrupt}").symlink_to(port / f"nvme/nvme{interrupt}")
    drive = bench_pci.placed({"name": "nvme0n1", "numa_node": None}, str(head / "nvme0n1"), str(tmp_path))
    assert drive["pci"]["interrupts"] == [9, 36, 55, 101]


def test_a_multipath_drives_requests_wait_in_its_paths_queues(tmp_path: Path) -> None:
    """The head has no scheduler; nvme1n1, nvme10n1 and another namespace are other drives."""
    for name in ("nvme1n1", "nvme10n1", "nvme10c65n1", "nvme10c66n1", "nvme10c65n11", "nvme1c0n2", "sda"):
        (tmp_path / "block" / name).mkdir(parents=True)
    found = {name: bench_pci.request_queues(name, str(tmp_path)) for name in ("nvme10n1", "nvme1n1", "sda", "md0")}
    assert found == {"nvme10n1": ["nvme10c65n1", "nvme10c66n1"], "nvme1n1": ["nvme1n1"], "sda": ["sda"], "md0": ["md0"]}


@pytest.mark.parametrize(
    ("links", "status", "detail"),
    [
        ([(GEN4, "16", GEN4, "16"), (GEN4, "4", GEN4, "4")], "unchanged", ""),
        (
            [(GEN3, "4", GEN3, "4"), (GEN3, "4", GEN4, "4")],
            "mismatch",
            "negotiated 8 GT/s x4, can do 16 GT/s x4; 0000:40:00.0 on the way to the root port can do 8 GT/s x4 at most",
        ),
        ([(GEN4, "16", GEN4, "16"), (GEN4, "2", GEN4, "4")], "mismatch", "negotiated 16 GT/s x2, can do 16 GT/s x4"),
        (
            [(GEN4, "1", GEN4, "1"), (GEN4, "4", GEN4, "4"), (GEN4, "4", GEN4, "4")],
            "unchanged",
            "0000:40:00.0 on the way to the root port can do 16 GT/s x1 at most",
        ),
        ([("Unknown", "0", "Unknown", "255")], "unsupported", "the device tells no PCIe link (usual on a virtual machine)"),
    ],
)  # fmt: skip
def test_a_link_is_full_when_it_runs_as_the_device_can(
    tmp_path: Path, links: list[tuple[str, str, str, str]], status: str, detail: str
) -> None:
    """A slower port, fewer lanes and a bottleneck further up are told apart."""
    (record,) = bench_placement.pcie_link_records([placed(tmp_path, links)], "full")
    assert (record["id"], record["status"], record["detail"]) == ("pcie-link-S1", status, detail)
    assert bench_placement.pcie_link_records([placed(tmp_path / "again", links)], "keep")[0]["status"] == "unchanged"


def test_interrupt_settings_are_made_per_device(tmp_path: Path) -> None:
    """Each device is put on the CPUs of its own node; one without a node cannot be asked."""
    drive = placed(tmp_path, [(GEN4, "4", GEN4, "4")])
    (setting,) = bench_placement.affinity_settings([drive], "nvme", "local-node")
    assert setting["id"] == "nvme-irq-affinity-S1"
    assert (setting["value"], setting["paths"][0]) == ("4-7", "irq/9/smp_affinity_list")
    assert bench_placement.affinity_settings([drive], "nvme", "keep") == []
    (nowhere,) = bench_placement.affinity_settings([{**drive, "node_cpus": ""}], "nvme", "local-node")
    assert (nowhere["paths"], nowhere["absent"]) == ([], "the kernel names no NUMA node for it")
    (none,) = bench_placement.affinity_settings([], "nic", "local-node")
    assert none["absent"] == "tuning.nic names no interface"
    with pytest.raises(AnsibleFilterError, match="nic_irq_affinity is 'all'"):
        bench_placement.affinity_settings([], "nic", "all")


def test_a_network_interface_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    """The refusal comes before anything is changed."""
    (tmp_path / "class/net/ens1").mkdir(parents=True)
    assert bench_host_facts.describe_nics(str(tmp_path), ["ens1"])[0]["pci"] is None
    with pytest.raises(ValueError, match=r"tuning\.nic names ens9, which this machine does not have \(it has: ens1\)"):
        bench_host_facts.describe_nics(str(tmp_path), ["ens9"])
