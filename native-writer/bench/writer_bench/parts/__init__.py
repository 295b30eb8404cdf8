"""The parts of the bench, in the order in which they run."""

from writer_bench.part import Part
from writer_bench.parts import (
    agent,
    budget,
    hot_store,
    hot_store_matrix,
    ingest,
    memory,
    minidaq,
    null_sink,
    report,
    streams,
    write,
)

MODULES = (write, minidaq, null_sink, budget, streams, agent, ingest, memory, hot_store)
PARTS: dict[str, Part] = {
    part.name: part
    for part in (*(module.PART for module in MODULES), hot_store_matrix.EMBEDDED, hot_store_matrix.SERVED, report.PART)
}
