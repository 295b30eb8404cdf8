"""The processor's name in /proc/cpuinfo.

Promise: provisioning and the survey of a machine call its processor alike. Ansible's modules import this file as
`ansible.module_utils.bench_cpu_model`, so that it imports no other of the kit.
"""

from __future__ import annotations

import re

MODEL = re.compile(r"^(?:model name|Model Name|Model|cpu)\s*:\s*(.+)$", re.MULTILINE)


def cpu_model(cpuinfo: str) -> str | None:
    """The name: x86, POWER and LoongArch print it, each by a name of its own; ARM servers leave it out."""
    found = MODEL.search(cpuinfo)
    return found.group(1).strip() if found else None
