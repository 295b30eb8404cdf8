"""The part of a Markdown page between two marks, which a study or a campaign renews."""

from __future__ import annotations

from pathlib import Path

from daq_bench.bench_model.base.whole_files import replace_file


def renew(page: Path, begin: str, end: str, body: str) -> None:
    """Puts `body` between the marks. Ends the program, and writes nothing, where they do not stand there once, in this order.

    A page may have several pairs with one `end`: the one behind `begin` counts."""
    text = page.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    old, ended, after = rest.partition(end)
    if not found or not ended or begin in rest or "<!--" in old:  # a lost end must not take the next pair's begin along
        raise SystemExit(f"error: {page} has no lines {begin} and {end} between which the table goes. Add them")
    replace_file(page, f"{before}{begin}\n{body}\n{end}{after}")
