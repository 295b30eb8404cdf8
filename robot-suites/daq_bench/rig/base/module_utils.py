"""Makes the code of Ansible's modules importable: it decides what they and the rig both decide."""

from __future__ import annotations

import ansible.module_utils

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.rig.base.settings import Layout


def use_module_utils(layout: Layout) -> None:
    """Lets `ansible.module_utils.bench_*` be imported here."""
    if str(layout.module_utils) not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(str(layout.module_utils))


def check_storage(layout: Layout, candidate: Candidate) -> None:
    """Raises RefusedError for a target that the storage role would refuse to build, before anything is changed for it."""
    use_module_utils(layout)
    from ansible.module_utils.bench_storage.errors import StorageError
    from ansible.module_utils.bench_storage.layout import layout_of

    for target in candidate.targets:
        if target.storage is None:
            continue
        asked = {"destroy": False, "purge": "none", "filesystem": "xfs", **target.storage}
        try:
            layout_of(target.name, target.directory, asked)
        except StorageError as error:
            named = f"target {target.name}" if target.name else "its target"
            raise RefusedError(f"candidate {candidate.name}, {named}: {error}. Correct it in the inventory") from None
