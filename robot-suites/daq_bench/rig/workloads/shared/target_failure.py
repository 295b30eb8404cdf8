"""The ways in which a workload says what its target did or did not do: evidence about the candidate, not a broken bench."""

from __future__ import annotations

from msgspec import convert

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError
from daq_bench.bench_model.documents.struct import Document, Struct, as_document
from daq_bench.bench_model.evidence.target_failures import (
    PURGE_FAILURE,
    TARGET_FAILURE,
    PurgeFailure,
    TargetFailure,
    in_words,
)


class _ToldError(BenchError):
    """A failure that becomes a document of type `kind` in the bundle's `file`."""

    file: str
    kind: type[Struct]
    told: Document

    def document(self, workload: str) -> Document:
        return as_document(convert({"schema_version": 1, "workload": workload, **self.told}, self.kind))


class TargetFailedError(_ToldError):
    """The target answered a tool's request with an errno by which a failed drive is known (bench_model.evidence.target_failures)."""

    file, kind = TARGET_FAILURE, TargetFailure

    def __init__(self, tool: str, during: str, errno: str, raw_drive: bool, said: str) -> None:
        super().__init__(f"{during}: the target failed ({errno}): {said}")
        self.told = {"tool": tool, "during": during, "errno": errno, "raw_drive": raw_drive, "said": said}


class UnpurgedError(_ToldError):
    """A purge left data on the raw drive that a workload needs empty (bench_model.evidence.target_failures)."""

    file, kind = PURGE_FAILURE, PurgeFailure

    def __init__(self, label: str, serial: str, method: str, zero_share: float) -> None:
        super().__init__(f"{label}: {in_words(method, zero_share)}")
        self.told = {"label": label, "serial": serial, "method": method, "zero_share": zero_share}


def failure_behind(error: BenchError) -> TargetFailedError | UnpurgedError | None:
    """The target's failure that `error` is, or that came before it: a clean-up that the failed target refused hides it. An interruption
    stays one."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, InterruptedRunError):
        if isinstance(behind, TargetFailedError | UnpurgedError):
            return behind
        behind = behind.__context__
    return None
