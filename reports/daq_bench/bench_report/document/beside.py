"""The words of the door of check-bundle beside runs: all runs that share them in one line."""

from __future__ import annotations

from collections.abc import Iterable

TITLE = "What stands beside these runs"
NAMED_MAX, LINES_MAX = 3, 8


def lines_of(runs: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each of the words, with the runs (id, words) that they are of; runs without words have no line."""
    by_words: dict[str, list[str]] = {}
    for run_id, words in runs:
        if words:
            by_words.setdefault(words, []).append(run_id)
    made = [f"{words}: {_named(ids)}." for words, ids in by_words.items()]
    return [*made[:LINES_MAX], *([f"{len(made) - LINES_MAX} more such lines."] if len(made) > LINES_MAX else [])]


def boxes_of(runs: Iterable[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The warning of a first page; none where no run has such words."""
    lines = lines_of(runs)
    return ((TITLE, tuple(lines)),) if lines else ()


def _named(ids: list[str]) -> str:
    if len(ids) <= NAMED_MAX:
        return ", ".join(ids)
    return f"{len(ids)} runs, {', '.join(ids[:NAMED_MAX])} among them"
