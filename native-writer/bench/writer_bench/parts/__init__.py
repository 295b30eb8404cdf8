"""The parts of the bench, in the order in which they run."""

from writer_bench.part import Part
from writer_bench.parts import agent, hot_store, ingest, memory, minidaq, null_sink, report, streams, write

PARTS: dict[str, Part] = {
    part.PART.name: part.PART for part in (write, minidaq, null_sink, streams, agent, ingest, memory, hot_store, report)
}
