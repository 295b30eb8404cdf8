"""The supernova-burst record as keywords. They show that the evidence is whole; bench_model judges what it is worth."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import snb_record


@library(scope="SUITE", auto_keywords=False)
class SnbRecordKeywords:
    """Keywords over rig.workloads.snb_record. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def record_supernova_burst(self) -> dict[str, Any]:
        """Records and reads back as often as the scenario says; writes results/snb_record.json and returns it."""
        document = measured(self._context, snb_record.WORKLOAD)
        self._log_events(document)
        return document

    def _log_events(self, record: dict[str, Any]) -> None:
        for number, repetition in enumerate(record["repetitions"], start=1):
            for episode in repetition["minidaq"]["busy"]["episodes"]:
                text = f"Dataflow is BUSY for {episode['duration_s']:.3f} s from {episode['start_s']:.3f} s of record {number}"
                self._context.bundle.event("busy", "snb_record", text, repetition=number, **episode)

    @keyword
    def every_superchunk_should_be_accounted_for(self, record: dict[str, Any]) -> None:
        """Fails unless offered = stored + lost in every repetition: a superchunk that nobody counted is the bench's fault."""
        for number, repetition in enumerate(record["repetitions"], start=1):
            counts = repetition["minidaq"]["superchunks"]
            if repetition["minidaq"]["status"] == "complete" and counts["offered"] != counts["stored"] + counts["lost"]:
                raise AssertionError(
                    f"repetition {number}: offered {counts['offered']}, but stored + lost = {counts['stored'] + counts['lost']}"
                )

    @keyword
    def read_back_should_cover_the_whole_record(self, record: dict[str, Any]) -> None:
        """Fails when the read-back expected another number of superchunks than the writer says it stored."""
        for number, repetition in enumerate(record["repetitions"], start=1):
            stored, expected = (
                repetition["minidaq"]["superchunks"]["stored"],
                repetition["verify"]["superchunks"]["expected"],
            )
            if repetition["verify"]["complete_trailer"] and stored != expected:
                raise AssertionError(
                    f"repetition {number}: stored {stored} superchunks, but the record's trailer says {expected}"
                )
