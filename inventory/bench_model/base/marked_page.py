"""The part of a Markdown page between two marks, which a study renews."""

from __future__ import annotations

from pathlib import Path


def renew(page: Path, begin: str, end: str, body: str) -> None:
    """Puts `body` between the marks. Ends the program, and writes nothing, where they do not stand there once, in this order."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if (text.count(begin), text.count(end), rest.count(end)) != (1, 1, 1):
        raise SystemExit(f"{page} has no lines {begin} and {end} between which the table goes. Add them")
    page.write_text(f"{before}{begin}\n{body}\n{end}{after}", encoding="utf-8")
