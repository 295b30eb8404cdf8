"""References from one part of a report to another, and the typography of running text.

Promise: a sentence says `see_table("latency")` and needs no number; when the document is set, the reference becomes a link
with the number, or the plain words given where the document has no such part. Everything else in a text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from markupsafe import Markup, escape

BEGIN, MIDDLE, END = "\ue000", "\ue001", "\ue002"  # private use: no name of a device holds them
# Controls, C1's too; turns and marks of direction; breaks of lines and paragraphs; byte order marks, annotations and tags. Joiners and
# the zero-width space are left alone: scripts and long names need them. A line feed parts the lines of a cell, a tab is white space.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ue000-\ue002\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
REFERENCE = re.compile(f"{BEGIN}(figure|table|section):([^{MIDDLE}]+){MIDDLE}([^{END}]*){END}")
WORD_MAX = 40  # characters of a word that fits on a line in any case
LONG_NAME = re.compile(r"(?=[^\s_./:=@]*[_./:=@])[^\s\u202f]{13,}")  # may not fit beside others on a phone
SEPARATOR = re.compile(
    r"(?<=\w)(?:_(?=\w)|[./:@=]+(?=[A-Za-z]))"
)  # browsers break a line behind a hyphen by themselves
QUANTITY = re.compile(  # or an option: `--` at the end of a line, and `scale` on the next, are another command
    r"\(?[^\s(]*\u202f[^\s,;)]+\)?|\d[\d.]*\s[kMGT]?i?B(?:/s)?\b|\b[kMGT]i?B/s|\bn = \S+|(?<![\w-])--[a-z][a-z-]*"
)


def see_table(name: str, otherwise: str = "the table") -> str:
    return f"{BEGIN}table:{name}{MIDDLE}{otherwise}{END}"


def see_section(name: str) -> str:
    return f"{BEGIN}section:{name}{MIDDLE}its section{END}"


def visible(text: str) -> str:
    """The text with every control character as its code point, such as [U+202E]: a name from a bundle must not turn a line around, end
    a page's text, or act on a terminal that prints the file."""
    return CONTROLS.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


@dataclass(frozen=True)
class Numbers:
    """The parts' numbers: for each kind and name `Table 3`, and the anchor that it stands at."""

    labels: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def plain(self, text: str) -> str:
        """The text with its references as words, for places that hold no links (attached data, alternative texts)."""
        return REFERENCE.sub(lambda found: self.labels.get((found[1], found[2]), (found[3], ""))[0], text)

    def prose(self, text: str) -> Markup:
        """The text with its references as links, and every number kept on one line with its unit."""
        parts: list[Markup] = []
        at = 0
        for found in REFERENCE.finditer(text):
            parts.append(unbroken(text[at : found.start()]))
            label, anchor = self.labels.get((found[1], found[2]), (found[3], ""))
            link = Markup('<a class="ref" href="#{}">{}</a>').format(anchor, label.replace(" ", "\u00a0"))
            parts.append(link if anchor else escape(label))
            at = found.end()
        return Markup("").join([*parts, unbroken(text[at:])])


def command(text: str) -> Markup:
    """The command with every word on one line: `--` and `duration` copied from two lines are another command. Long words may break."""
    words = (
        Markup('<span class="q">{}</span>').format(word) if len(word) <= WORD_MAX else escape(word)
        for word in text.split(" ")
    )
    return Markup(" ").join(words)


def unbroken(text: str) -> Markup:
    """The text with every number and its unit, a rate's unit in a head, and every option kept on one line; "GB/s" would else break behind
    its stroke."""
    parts: list[str] = []
    at = 0
    for match in QUANTITY.finditer(text):
        parts += [breakable(text[at : match.start()]), Markup('<span class="q">{}</span>').format(match.group())]
        at = match.end()
    return Markup("").join([*parts, breakable(text[at:])])


def breakable(text: str) -> Markup:
    """The text with a place to break a long name at behind each separator, for a narrow screen: else it breaks anywhere in a word."""
    parts: list[str] = []
    at = 0
    for name in LONG_NAME.finditer(text):
        for found in SEPARATOR.finditer(text, *name.span()):
            parts += [escape(text[at : found.end()]), Markup("<wbr>")]
            at = found.end()
    return Markup("").join([*parts, escape(text[at:])])
