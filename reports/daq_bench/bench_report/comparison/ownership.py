"""The total cost of ownership in the comparison: what the buyer's tariff and the measured power make of the price."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.comparison import ComparisonDocument
from daq_bench.bench_model.tender.ownership import ENERGY, OWNERSHIP
from daq_bench.bench_report.base.units import NONE, significant
from daq_bench.bench_report.comparison.tables import by_letter, money
from daq_bench.bench_report.comparison.words import letters
from daq_bench.bench_report.document.section import Part
from daq_bench.bench_report.document.table import Table


def ownership_table(found: ComparisonDocument) -> Iterator[Part]:
    """Yields price, electricity and their sum of each contender; nothing where the buyer named no tariff."""
    shown = [one for one in by_letter(found) if OWNERSHIP in one.figures]
    if not shown:
        return
    tags, rows = letters(found), []
    for one in shown:
        own, currency = one.figures, one.currency
        energy = own[ENERGY].value
        rows.append((
            f"{tags[one.name]} {one.name}", money(own["cost"].value, currency),
            NONE if energy is None else significant(energy, 4),
            NONE if own[OWNERSHIP].value is None else money(own[OWNERSHIP].value, currency),
            own[OWNERSHIP].basis or f"not known: {own[OWNERSHIP].reason}",
        ))  # fmt: skip
    yield Table(
        ("Contender", "Price", "Electricity", "Cost of ownership", "From"), "tnnnt", tuple(rows),
        "Total cost of ownership: the price, and the electricity for the hours that the buyer declared, by the server's measured power "
        "under the record's load. Cooling, room, repair and staff are not in it.",
        "ownership",
    )  # fmt: skip
