"""The colours, dashes and marks of all figures: made for the colour-blind, and no series is told apart by colour alone."""

from __future__ import annotations

from typing import Any

INK, GREY, FAINT = "#1a1a1a", "#6b6b6b", "#d9d9d9"
# Each pair is at least 20 apart (CIELAB) for normal sight and for all three kinds of colour-blindness, and each is at least 5 lighter or
# darker than the next, so that a grey copy keeps them apart; test_palette.py measures it.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, ASH = "#165EC6", "#A12417", "#133A28", "#A7539F", "#D57C09", "#838383"
SKY = "#56B4E9"
Look = tuple[str, Any, str]  # colour, dashes, marker
SERIES: tuple[Look, ...] = (
    (BLUE, "-", "o"), (VERMILLION, "--", "s"), (GREEN, "-.", "^"), (PURPLE, ":", "D"), (ORANGE, (0, (5, 1, 1, 1)), "v"),
    (ASH, (0, (1, 1)), "x"),
)  # fmt: skip
