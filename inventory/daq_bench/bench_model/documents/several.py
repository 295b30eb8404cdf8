"""Parts of the documents on several runs: comparison.json and lot.json."""

from __future__ import annotations

from daq_bench.bench_model.documents.struct import Closed


class Titled(Closed, frozen=True):
    id: str
    title: str | None


class RunBehind(Closed, frozen=True):
    """A run that a document rests on. `word`: the outcome as people read it. `reason`: why it does not count; null where it does.
    `marks`: what the door of check-bundle says beside it."""

    run_id: str
    manifest_sha256: str | None
    outcome: str
    word: str
    reason: str | None
    marks: list[str]
