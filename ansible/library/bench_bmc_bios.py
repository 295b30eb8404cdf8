#!/usr/bin/python
"""Set, verify or restore a server's BIOS power settings through its BMC's Redfish service."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_bmc_bios
short_description: Set, verify or restore a server's BIOS power settings through Redfish
description:
  - Runs on the control node, in the bench's Python environment; needs the package sushy.
  - Finds the vendor's attribute names and values in O(vendors). An option that the BIOS lacks is recorded as C(unsupported) with
    the name that was looked for. The task does not fail for this; a BMC that cannot be entered does.
  - Settings that wait for a reboot are recorded as C(mismatch), unless O(reboot=allowed).
options:
  mode:
    description:
      - Whether to set what is asked, only to read back, to put the values from before back, or only to see to the power.
      - All but C(verify) first switch on a machine that a bench had shut down and did not live to switch on again.
    type: str
    choices: [apply, verify, restore, power]
    default: apply
  power_profile:
    description: Power profile asked for.
    type: str
    choices: [maximum-performance, balanced, power-saving, keep]
    default: keep
  cstates:
    description: Whether the CPUs may enter C-states.
    type: str
    choices: ["on", "off", keep]
    default: keep
  turbo:
    description: Whether the CPUs may exceed their nominal frequency.
    type: str
    choices: ["on", "off", keep]
    default: keep
  memory_speed:
    description: Memory speed asked for.
    type: str
    choices: [maximum, auto, keep]
    default: keep
  cooling:
    description: Fans as the firmware drives them, for servers that take no fan command.
    type: str
    choices: [maximum, automatic, keep]
    default: keep
  reboot:
    description: Whether the machine may be restarted through Redfish for settings that wait for it.
    type: str
    choices: [allowed, never]
    default: never
  reboot_wait_s:
    description: Longest time from the restart until the settings read back, in seconds.
    type: float
    default: 900
  address:
    description: The BMC's address; empty where the inventory entry has none.
    type: str
    default: ""
  port:
    description: TCP port of the Redfish service.
    type: int
    default: 443
  user:
    description: The BMC's user.
    type: str
    default: ""
  password:
    description: The user's password, from Ansible Vault. Empty to take it from O(password_env).
    type: str
    default: ""
  password_env:
    description: Environment variable of the control node that holds the password.
    type: str
    default: ""
  ca_file:
    description: File with the CA's certificate that verifies the BMC's; empty for the well-known CAs.
    type: path
    default: ""
  insecure:
    description: Whether to go without verifying the BMC's certificate.
    type: bool
    default: false
  fingerprint:
    description: SHA-256 of the BMC's own certificate, in hexadecimal digits; such a one is trusted, whoever signed it.
    type: str
    default: ""
  system:
    description: Which of several systems, as the last part of its path (System_0); empty for the only one, or the only one with a BIOS.
    type: str
    default: ""
  vendor:
    description: Key into O(vendors); empty to find it by the system's Manufacturer.
    type: str
    default: ""
  vendors:
    description: Attribute names and values of each vendor, as roles/bios/vars/main/vendors.yml holds them.
    type: dict
    required: true
  state_file:
    description: Where the values from before are kept on the control node.
    type: path
    required: true
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Set the power profile
  bench_bmc_bios:
    power_profile: maximum-performance
    address: 10.0.0.7
    user: admin
    password_env: BENCH_BMC_PASSWORD
    ca_file: /etc/ssl/bmc-ca.pem
    vendors: "{{ __bios_vendors }}"
    state_file: /var/lib/daq-storage-bench/bios-before.json
  delegate_to: localhost
"""

RETURN = r"""
records:
  description: One record per setting; after V(restore) one per attribute.
  returned: always
  type: list
  elements: dict
  sample:
    - id: bios-power-profile
      role: bios
      subject: SysProfile
      asked: maximum-performance
      before: SysProfile=PerfPerWattOptimizedDapc
      applied: SysProfile=PerfOptimized
      read_back: SysProfile=PerfOptimized
      status: applied
      detail: "restarted by Redfish: graceful shutdown, then on"
restarted:
  description: Whether the machine was restarted.
  returned: always
  type: bool
waiting:
  description: Whether something is pending that a restart brings into force.
  returned: always
  type: bool
power:
  description: Whether the BMC says that the machine is on or off; empty where it was not asked.
  returned: always
  type: str
remaining_s:
  description: The rest of O(reboot_wait_s), for the task that waits for the machine to answer.
  returned: always
  type: float
"""

import os
from typing import TYPE_CHECKING

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.bench_bmc.bios import SETTINGS
from ansible.module_utils.bench_bmc.bios_control import Control, Run, Terms, note_of, recovered, vendor_key, without
from ansible.module_utils.bench_bmc.errors import BmcError, password_of
from ansible.module_utils.bench_bmc.first_values import FirstValues, FirstValuesError
from ansible.module_utils.bench_state import tuning_record

if TYPE_CHECKING:  # loaded when a BMC is asked: that takes longer than the rest of this module
    from ansible.module_utils.bench_bmc.redfish import Service, System

ON_OFF = {"type": "str", "choices": ["on", "off", "keep"], "default": "keep"}
OPTIONS = {
    "mode": {"type": "str", "choices": ["apply", "verify", "restore", "power"], "default": "apply"},
    "power_profile": {
        "type": "str",
        "choices": ["maximum-performance", "balanced", "power-saving", "keep"],
        "default": "keep",
    },
    "cstates": ON_OFF,
    "turbo": ON_OFF,
    "memory_speed": {"type": "str", "choices": ["maximum", "auto", "keep"], "default": "keep"},
    "cooling": {"type": "str", "choices": ["maximum", "automatic", "keep"], "default": "keep"},
    "reboot": {"type": "str", "choices": ["allowed", "never"], "default": "never"},
    "reboot_wait_s": {"type": "float", "default": 900},
    "address": {"type": "str", "default": ""},
    "port": {"type": "int", "default": 443},
    "user": {"type": "str", "default": ""},
    "password": {"type": "str", "default": "", "no_log": True},
    "password_env": {"type": "str", "default": "", "no_log": False},
    "ca_file": {"type": "path", "default": ""},
    "insecure": {"type": "bool", "default": False},
    "fingerprint": {"type": "str", "default": ""},
    "system": {"type": "str", "default": ""},
    "vendor": {"type": "str", "default": ""},
    "vendors": {"type": "dict", "required": True},
    "state_file": {"type": "path", "required": True},
}
NO_BMC = "no BMC address in the inventory entry (bench_candidate.bmc), so that the firmware can be neither read nor set"


def service_of(module: AnsibleModule) -> Service:
    """Build the connection; the password is hidden from the module's output."""
    from ansible.module_utils.bench_bmc.redfish import Service

    options = module.params
    password = password_of(options["password"], options["password_env"], os.environ)
    module.no_log_values.add(password)
    return Service(
        options["address"],
        options["port"],
        options["user"],
        password,
        "bench_bmc_password" if options["password"] else options["password_env"],
        options["ca_file"] or "",
        options["insecure"],
        options["fingerprint"],
        options["system"],
    )


def tls_record(service: Service) -> dict[str, str]:
    """Warn in the evidence that anybody on the network could have answered for the BMC."""
    return tuning_record(
        "bmc-certificate",
        role="bios",
        subject=service.url,
        asked="not verified",
        read_back="not verified",
        status="unchanged",
        detail="warning: bmc.insecure is true, so that the BMC's certificate was not verified",
    )


def run_mode(module: AnsibleModule) -> Run:
    """Set, verify or restore, as `mode` says, or read the power state."""
    options, mode = module.params, module.params["mode"]
    asked = {setting: options[setting] for setting in SETTINGS}
    if not options["address"]:
        return Run() if mode in ("restore", "power") else without(asked, NO_BMC)
    state = FirstValues(options["state_file"], f"BMC {options['address']} port {options['port']}")
    note = note_of(state)
    asleep = bool(note.values) and mode != "verify" and not module.check_mode
    nothing = None
    if mode == "restore" and not state.values:
        nothing = Run()
    elif mode in ("apply", "verify") and all(value == "keep" for value in asked.values()):
        nothing = without(asked, "nothing is asked, so that the BMC was not asked either")
    if nothing and not asleep:
        return nothing
    try:
        from ansible.module_utils.bench_bmc.redfish import connect
    except ImportError as error:
        module.fail_json(msg=missing_required_lib("sushy"), exception=str(error))
    service = service_of(module)
    system = connect(service)
    woken = [recovered(system, note)] if asleep else []
    run = Run(power=system.power) if mode == "power" else nothing or set_or_read(module, system, state, asked)
    if woken:
        run.records += woken
        run.restarted, run.changed = run.restarted or woken[0]["detail"], True
    if service.insecure and not service.fingerprint:
        run.records.append(tls_record(service))
    return run


def set_or_read(module: AnsibleModule, system: System, state: FirstValues, asked: dict[str, str]) -> Run:
    """Apply, verify or restore."""
    options = module.params
    wanted = options["vendor"] or state.values.get("vendor", "")
    key = vendor_key(options["vendors"], wanted, system.manufacturer, system.service.where)
    control = Control(system, state, options["vendors"], key)
    terms = Terms(options["reboot"] == "allowed", options["reboot_wait_s"], module.check_mode)
    if options["mode"] == "verify":
        return control.verify(asked)
    return control.restore(terms) if options["mode"] == "restore" else control.apply(asked, terms)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    try:
        run = run_mode(module)
    except (BmcError, FirstValuesError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=run.changed,
        records=run.records,
        restarted=bool(run.restarted),
        waiting=run.waiting,
        power=run.power,
        remaining_s=max(30.0, module.params["reboot_wait_s"] - run.waited_s),
        diff={
            "before": {record["id"]: record["before"] for record in run.records},
            "after": {record["id"]: record["read_back"] for record in run.records},
        },
    )


if __name__ == "__main__":
    main()
