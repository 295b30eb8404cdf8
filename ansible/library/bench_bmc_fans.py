#!/usr/bin/python
"""Set, verify or restore a server's fan mode through its BMC, with a record of each fan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_bmc_fans
short_description: Set, verify or restore a server's fan mode through its BMC
description:
  - Sends the vendor's raw IPMI sequences with ipmitool, over the LAN where O(address) is given (then run it on the
    control node), else through the machine's own IPMI device.
  - Reads every fan's speed before and after. The mode from before is in O(state_dir) before anything is changed.
  - Full speed is only set under a guard (O(guard_program)) that gives the fans back to automatic control when its
    lease is not renewed.
options:
  mode:
    description: Whether to set what is asked, only to read back, or to put the mode from before back.
    type: str
    choices: [apply, verify, restore]
    default: apply
  fan_mode:
    description: The mode asked for. V(keep) only records.
    type: str
    choices: [full, automatic, keep]
    default: keep
  address:
    description: The BMC's address; empty for the machine's own IPMI device.
    type: str
    default: ""
  port:
    description: UDP port of IPMI over LAN.
    type: int
    default: 623
  user:
    description: The BMC's user.
    type: str
    default: ""
  password:
    description: The user's password, from Ansible Vault. Empty to take it from O(password_env).
    type: str
    default: ""
  password_env:
    description: Environment variable that holds the password where this module runs.
    type: str
    default: ""
  cipher_suite:
    description: Cipher suite (ipmitool -C).
    type: int
    default: 17
  vendor:
    description: Key into O(vendors); empty to find it by the BMC's manufacturer ID.
    type: str
    default: ""
  vendors:
    description: Raw sequences of each vendor, as roles/fans/vars/main/vendors.yml holds them.
    type: dict
    required: true
  state_dir:
    description: Directory for the mode from before, the lease and the guard's log.
    type: path
    required: true
  guard_program:
    description: The guard (fan_guard.py) where this module runs.
    type: path
    default: ""
  guard_unit:
    description: Name of the guard's transient systemd unit; empty to start it as a process of its own.
    type: str
    default: ""
  lease_s:
    description: Seconds after which the guard gives the fans back unless the lease is renewed.
    type: float
    default: 14400
  settle_s:
    description: Longest wait for the fans to reach full speed, in seconds.
    type: float
    default: 60
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Set the fans to full speed
  bench_bmc_fans:
    fan_mode: full
    address: 10.0.0.7
    user: admin
    password_env: BENCH_BMC_PASSWORD
    vendor: supermicro
    vendors: "{{ __fans_vendors }}"
    state_dir: /var/lib/daq-storage-bench
    guard_program: /opt/daq-storage-bench/fan_guard.py
  delegate_to: localhost
"""

RETURN = r"""
records:
  description: Records of the mode, the fans' speeds and the guard.
  returned: always
  type: list
  elements: dict
  sample:
    - id: fan-mode
      role: fans
      subject: all fans
      asked: full
      before: standard
      applied: full
      read_back: full
      status: applied
      detail: ""
lease:
  description: The guard's lease file where full speed is asked, to be renewed by whoever needs it.
  returned: always
  type: str
  sample: /var/lib/daq-storage-bench/fans-lease.json
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_bmc.errors import BmcError, password_of
from ansible.module_utils.bench_bmc.fan_control import Asked, Fans, Run, unsupported, vendor_of
from ansible.module_utils.bench_bmc.fan_guard import GuardControl
from ansible.module_utils.bench_bmc.first_values import FirstValues, FirstValuesError
from ansible.module_utils.bench_bmc.ipmi import Bmc, CommandRefusedError, Ipmi, find_ipmitool
from ansible.module_utils.bench_host import ipmi_device

OPTIONS = {
    "mode": {"type": "str", "choices": ["apply", "verify", "restore"], "default": "apply"},
    "fan_mode": {"type": "str", "choices": ["full", "automatic", "keep"], "default": "keep"},
    "address": {"type": "str", "default": ""},
    "port": {"type": "int", "default": 623},
    "user": {"type": "str", "default": ""},
    "password": {"type": "str", "default": "", "no_log": True},
    "password_env": {"type": "str", "default": "", "no_log": False},
    "cipher_suite": {"type": "int", "default": 17},
    "vendor": {"type": "str", "default": ""},
    "vendors": {"type": "dict", "required": True},
    "state_dir": {"type": "path", "required": True},
    "guard_program": {"type": "path", "default": ""},
    "guard_unit": {"type": "str", "default": ""},
    "lease_s": {"type": "float", "default": 14400},
    "settle_s": {"type": "float", "default": 60},
}


def bmc_of(module: AnsibleModule) -> Bmc:
    """Build the connection; the password is hidden from the module's output."""
    options = module.params
    if not options["address"]:
        return Bmc()
    password = password_of(options["password"], options["password_env"], os.environ)
    module.no_log_values.add(password)
    source = options["password_env"] if not options["password"] else "bench_bmc_password"
    return Bmc(
        options["address"], options["port"], options["user"], options["cipher_suite"], password, password_from=source
    )


def in_band_obstacle(address: str) -> str:
    """Say why the machine's own BMC cannot be reached; empty where it can, or where the LAN is used."""
    if address:
        return ""
    if not ipmi_device():
        return "no BMC address in the inventory entry (bench_candidate.bmc) and no IPMI device on the machine"
    return "" if find_ipmitool() else f"{ipmi_device()} is there, but ipmitool is not installed on the candidate"


def run_mode(module: AnsibleModule, guard: GuardControl) -> Run:
    """Set, verify or restore, as `mode` says."""
    options = module.params
    asked = Asked(options["fan_mode"], options["settle_s"], options["lease_s"])
    subject = f"BMC {options['address'] or 'of the machine itself'}"
    state = FirstValues(os.path.join(options["state_dir"], "fans-before.json"), subject)
    if options["mode"] == "restore" and not state.values:
        ended = not module.check_mode and guard.release()
        return Run(changed=ended)
    obstacle = in_band_obstacle(options["address"])
    if obstacle:
        return unsupported(asked.mode, obstacle)
    ipmi = Ipmi(bmc_of(module))
    needed = asked.mode != "keep" or options["mode"] == "restore" or bool(options["vendor"])
    fans = Fans(ipmi, vendor_of(ipmi, options["vendor"], options["vendors"]) if needed else None, state, guard)
    if options["mode"] == "verify":
        return fans.verify(asked)
    if options["mode"] == "restore":
        return fans.restore(module.check_mode)
    return fans.apply(asked, module.check_mode)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    options = module.params
    guard = GuardControl(options["guard_program"], options["state_dir"], options["guard_unit"])
    try:
        run = run_mode(module, guard)
    except (BmcError, CommandRefusedError, FirstValuesError, OSError) as error:
        module.fail_json(msg=str(error))
    before = {record["id"]: record["before"] for record in run.records}
    after = {record["id"]: record["read_back"] for record in run.records}
    module.exit_json(
        changed=run.changed, records=run.records, lease=guard.lease, diff={"before": before, "after": after}
    )


if __name__ == "__main__":
    main()
