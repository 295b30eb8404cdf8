"""Looks into a report: a section's figures and tables by name, the texts of a drawing, the words that are printed."""

from __future__ import annotations

import re
from html import unescape

from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.output.printed import for_paper


def figure(of: Section, name: str) -> Figure:
    return next(part for part in of.parts if isinstance(part, Figure) and part.name == name)


def table(of: Section, name: str) -> Table:
    return next(part for part in of.parts if isinstance(part, Table) and part.name == name)


def texts(svg: str) -> set[str]:
    return {re.sub(r"<[^>]+>", "", text).strip() for text in re.findall(r"<text.*?</text>", svg, flags=re.DOTALL)}


def printed_words(html: str) -> str:
    """The words of a report's pages but for those in figures, without setting the pages, which takes seconds."""
    text = re.sub(r"<style.*?</style>", "", for_paper(html), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())
