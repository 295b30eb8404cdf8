"""Refuses a machine that cannot be a candidate before anything of it is changed: the rule is Ansible's own (bench_fit)."""

from __future__ import annotations

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.struct import Closed, as_document, read
from daq_bench.rig.base.module_utils import use_module_utils
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.machine import Machine


class Runtime(Closed, frozen=True):
    """A machine as a program finds it. `glibc` is empty where the C library is another."""

    machine: str
    glibc: str
    python: str
    libraries: list[str]


def unfit(machine: Machine, layout: Layout) -> list[str]:
    """All that keeps a machine behind SSH from being a candidate, each with its remedy. This machine runs what was built on it."""
    if machine.is_local:
        return []
    use_module_utils(layout)
    from ansible.module_utils.bench_elf import needs_of
    from ansible.module_utils.bench_fit import obstacles, unbuilt

    programs = {}
    for file in (layout.portable_daqwriter, *layout.programs.values()):
        try:
            programs[file.name] = needs_of(str(file)) if file.is_file() else unbuilt()
        except (OSError, ValueError) as error:
            raise BenchError(f"{file} is damaged: {error}. Build it again: `make build`") from None
    offered = read(machine.call("runtime"), Runtime, "the candidate's account of its system")
    try:
        found: list[str] = obstacles(programs, as_document(offered))
    except ValueError:
        raise BenchError(
            f"the candidate says that its glibc is {offered.glibc!r} and its Python {offered.python!r}, which are no versions"
        ) from None
    return found


def check_fit(machine: Machine, layout: Layout, name: str) -> None:
    """Raises RefusedError with all of `unfit`."""
    if found := unfit(machine, layout):
        raise RefusedError(f"{name} cannot be a candidate: {'; '.join(found)}. Nothing was changed")
