#!/usr/bin/python
"""Apply, verify or restore settings of the running kernel, with a record of each."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_kernel_settings
short_description: Apply, verify or restore settings of the running kernel and of systemd's running units
description:
  - Applies a list of settings, reads every one back and returns a record of each, in the form of
    C(facts/tuning.json).
  - Values are of the running kernel only. The value a file held is kept in O(state_file) before it is
    first written.
  - The module records a setting that the machine lacks as C(unsupported), one that the kernel rejects as C(refused),
    and one that reads back differently as C(mismatch). The task does not fail for these.
options:
  mode:
    description: Whether to write what differs, only to read back, or to put remembered values back.
    type: str
    choices: [apply, verify, restore]
    default: apply
  role:
    description: The role on whose behalf this runs; it stands in each record.
    type: str
    required: true
  state_file:
    description: Where the values from before the first write are kept on the candidate.
    type: path
    required: true
  sysfs_root:
    description: Where sysfs is mounted.
    type: path
    default: /sys
  sysctl_root:
    description: Where the sysctl tree is.
    type: path
    default: /proc/sys
  procfs_root:
    description: Where procfs is mounted.
    type: path
    default: /proc
  daemons:
    description:
      - Settings of units that would undo the others, as O(settings). They are applied before the first of O(settings) is read, restored
        after the last one, and recorded under O(role) with C(_daemons) behind it. Not used by C(restore).
    type: list
    elements: dict
    default: []
    suboptions: &setting
      id:
        description: Name of the setting, unique over all roles.
        type: str
        required: true
      subject:
        description: The part of the machine that it concerns, for people.
        type: str
        required: true
      root:
        description: The tree that O(settings[].paths) are relative to.
        type: str
        choices: [sysfs, sysctl, procfs, systemd]
        default: sysfs
      paths:
        description:
          - Glob patterns of the files, relative to the root. All files of one setting get one value.
          - Below V(systemd), C(property:UNIT:NAME) (until the next reboot), C(service:NAME) and C(unit:NAME) (V(running), V(stopped)).
        type: list
        elements: str
        required: true
      value:
        description: The value asked for. V(keep) asks for nothing and only records what is there.
        type: str
        default: keep
      asked:
        description: How the request reads in the record; the value itself when empty.
        type: str
        default: ""
      other_cpus:
        description: The value is a list of CPUs to keep free; what is written are all other CPUs that are online.
        type: bool
        default: false
      comparison:
        description:
          - V(at_least) accepts any larger integer as well, and then does not write.
          - V(cpus_within) accepts any list of CPUs that are among those of the value.
        type: str
        choices: [equal, at_least, cpus_within]
        default: equal
      effective_file:
        description: Name of a file beside each path that tells what the kernel made of the value.
        type: str
        default: ""
      only_above:
        description: Leaves out the paths whose file O(settings[].only_above_file) holds no larger integer.
        type: int
      only_above_file:
        description: Name of that file, beside each path.
        type: str
        default: ""
      format:
        description: V(bracketed) for files that list all choices and bracket the chosen one.
        type: str
        choices: [plain, bracketed]
        default: plain
      choices_file:
        description: Name of a file beside each path that lists the values this machine offers.
        type: str
        default: ""
      absent:
        description: The reason to record where no such file exists.
        type: str
        required: true
  settings:
    description: The settings, in the order in which they are applied. Not used by C(restore).
    type: list
    elements: dict
    default: []
    suboptions: *setting
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Set the CPU governor
  bench_kernel_settings:
    role: cpu
    state_file: /var/lib/daq-storage-bench/tuning-before.json
    settings:
      - id: cpu-governor
        subject: all CPUs
        paths: [devices/system/cpu/cpu*/cpufreq/scaling_governor]
        value: performance
        choices_file: scaling_available_governors
        absent: the kernel offers no frequency scaling for this machine's CPUs
"""

RETURN = r"""
records:
  description: One record per setting.
  returned: always
  type: list
  elements: dict
  sample:
    - id: cpu-governor
      role: cpu
      subject: all CPUs
      asked: performance
      before: powersave
      applied: performance
      read_back: performance
      status: applied
      detail: ""
"""

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_cpus import cpus_left, parse_cpus
from ansible.module_utils.bench_kernel import (
    Outcome,
    Run,
    Setting,
    read_text,
    restore_values,
    run_settings,
    summarise,
)
from ansible.module_utils.bench_state import State, StateError, locked
from ansible.module_utils.bench_systemd import PREFIX

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"


def suboptions() -> dict[str, Any]:
    """Return the argument spec of one setting."""
    return {
        "id": {"type": "str", "required": True},
        "subject": {"type": "str", "required": True},
        "root": {"type": "str", "choices": ["sysfs", "sysctl", "procfs", "systemd"], "default": "sysfs"},
        "paths": {"type": "list", "elements": "str", "required": True},
        "value": {"type": "str", "default": "keep"},
        "asked": {"type": "str", "default": ""},
        "other_cpus": {"type": "bool", "default": False},
        "comparison": {"type": "str", "choices": ["equal", "at_least", "cpus_within"], "default": "equal"},
        "effective_file": {"type": "str", "default": ""},
        "only_above": {"type": "int"},
        "only_above_file": {"type": "str", "default": ""},
        "format": {"type": "str", "choices": ["plain", "bracketed"], "default": "plain"},
        "choices_file": {"type": "str", "default": ""},
        "absent": {"type": "str", "required": True},
    }


def asked_value(options: dict[str, Any], sysfs_root: str) -> str | None:
    """Return the value to be written, None where nothing is asked; ValueError names the setting."""
    value = None if options["value"] == "keep" else str(options["value"])
    if value is None:
        return None
    try:
        if options["comparison"] == "at_least" and not value.isdigit():
            raise ValueError(f"is {value!r}; at_least needs a whole number")
        if options["comparison"] == "cpus_within":
            parse_cpus(value)
        if options["other_cpus"]:
            return cpus_left(value, read_text(os.path.join(sysfs_root, "devices/system/cpu/online")))
    except ValueError as error:
        raise ValueError(f"{options['id']} {error}") from error
    return value


def setting_from(options: dict[str, Any], roots: dict[str, str]) -> Setting:
    """Build one setting from its checked options."""
    value = asked_value(options, roots["sysfs"])
    at_least = options["comparison"] == "at_least" and value is not None
    systemd = options["root"] == "systemd"
    return Setting(
        id=options["id"],
        subject=options["subject"],
        paths=[PREFIX + path if systemd else os.path.join(roots[options["root"]], path) for path in options["paths"]],
        value=value,
        asked=options["asked"] or (f">= {value}" if at_least else options["value"]),
        at_least=at_least,
        cpus_within=options["comparison"] == "cpus_within",
        effective_file=options["effective_file"],
        only_above=options["only_above"],
        only_above_file=options["only_above_file"],
        bracketed=options["format"] == "bracketed",
        choices_file=options["choices_file"],
        absent=options["absent"],
    )


def apply_settings(role: str, settings: list[Setting], state: State, pretend: bool) -> Run:
    """Apply the settings that differ; the state is on disk before the first write."""

    def remember(setting: Setting, outcomes: list[Outcome]) -> None:
        values = {outcome.path: outcome.before for outcome in outcomes}
        if values and state.remember(setting.id, role, setting.subject, setting.bracketed, values):
            state.save()

    return run_settings(role, settings, remember, write=True, pretend=pretend)


def verify_settings(role: str, settings: list[Setting], state: State) -> Run:
    """Read every setting; `before` is the machine's value before the bench first wrote to it."""
    run = run_settings(role, settings, lambda setting, outcomes: None, write=False)
    for record in run.records:
        saved = state.settings.get(record["id"])
        record["before"] = summarise(saved["values"].values()) if saved else ""
    return run


def restore_settings(role: str, state: State, pretend: bool) -> Run:
    """Put back the values that are remembered for the role; forget settings that hold their first value again."""
    records, changed = [], False
    for setting_id in state.of_role(role):
        record, moved = restore_values(role, setting_id, state.settings[setting_id], pretend)
        records.append(record)
        changed = changed or moved
        if not pretend and record["status"] not in ("mismatch", "refused"):
            state.forget(setting_id)
    if not pretend:
        state.save()
    return Run(records, changed)


def joined(runs: Iterable[Run]) -> Run:
    """Run one after the other; return what they found together."""
    done = list(runs)
    return Run([record for run in done for record in run.records], any(run.changed for run in done))


def run_mode(module: AnsibleModule) -> Run:
    """Apply, verify or restore, as `mode` says, holding the state directory's lock."""
    options = module.params
    roots = {name: options[f"{name}_root"] for name in ("sysfs", "sysctl", "procfs")}
    role, daemons = options["role"], f"{options['role']}_daemons"
    groups = [
        (name, [setting_from(item, roots) for item in options[key]])
        for name, key in ((daemons, "daemons"), (role, "settings"))
    ]
    # Only modes that write take the lock; the file is replaced as a whole, so a reader always sees a whole one.
    writes = options["mode"] != "verify" and not module.check_mode
    with locked(os.path.dirname(options["state_file"])) if writes else contextlib.nullcontext():
        state = State(options["state_file"], read_text(BOOT_ID_FILE))
        if options["mode"] == "verify":
            return joined(verify_settings(name, settings, state) for name, settings in groups)
        if options["mode"] == "restore":
            return joined(restore_settings(name, state, module.check_mode) for name in (role, daemons))
        return joined(apply_settings(name, settings, state, module.check_mode) for name, settings in groups)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "choices": ["apply", "verify", "restore"], "default": "apply"},
            "role": {"type": "str", "required": True},
            "state_file": {"type": "path", "required": True},
            "sysfs_root": {"type": "path", "default": "/sys"},
            "sysctl_root": {"type": "path", "default": "/proc/sys"},
            "procfs_root": {"type": "path", "default": "/proc"},
            "daemons": {"type": "list", "elements": "dict", "default": [], "options": suboptions()},
            "settings": {"type": "list", "elements": "dict", "default": [], "options": suboptions()},
        },
        supports_check_mode=True,
    )
    try:
        run = run_mode(module)
    except (StateError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    before = {record["id"]: record["before"] for record in run.records}
    after = {record["id"]: record["read_back"] for record in run.records}
    module.exit_json(changed=run.changed, records=run.records, diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
