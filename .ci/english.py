"""Finds sentences that are not plain English: inverted ones, and such without a subject that acts. CONTRIBUTING.md shows pairs.

It reads Markdown, and the prose of programs: comments, docstrings and messages. It exempts quoted text (quotation marks, backquotes,
blocks of code in Markdown), `{...}` in messages, and folders whose text was recorded."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePath

RECORDED = frozenset({"fixtures", "recorded", "golden"})  # folders; a README.md in one is ours
START = r"(?:\A|[.:;!?][\")'*]* )[ \-*#>(]*"  # of a sentence
VERB = r"\b(?:is|are|was|were|has|have|had|does|do|did|may|must|can|cannot|will|stands?|lies?|counts?|comes?|goes|gives?)\b"
PATTERNS = {  # by name: what it looks like, and what to write instead
    "Of ...": (
        rf"{START}(?P<at>Of) +(?!course\b)\S|; +(?P<second>of) +(?!which\b)\w",
        "begin with the subject: 3 of 8 ratios differ",
    ),
    "What ... is ...": (
        rf"(?:\A|[:] )[ \-*>(]*(?P<at>What) (?=[^.?!:;]*?{VERB}[^.?!:;]*?{VERB}[^.?!]*(?:[.!]|\Z))"
        r"|[.;!]\)? +(?P<second>What) (?=[^?!:;]*[.;])",
        "begin with the subject: the agent deletes old points",
    ),
    "by them:": (r"\b(?P<at>[Bb]y) +(?:them|these|it):", "say who acts: the judge decides by these rules"),
    "whom": (r"\b(?P<at>[Ww]hom)\b", "name the person or the thing: which of them slows the other down"),
    "is none": (
        r"(?<!\bthere )(?<!\bThere )\b(?P<at>is|are|was|were) +none\b",
        "say what is not so: it is not a number, no drive has one",
    ),
    "none of": (r"\b(?P<at>[Nn]one) +of\b", "put the negation to the noun or the verb: no file, not one of, never"),
    "as it was": (r"\b(?P<at>as) +(?:it +was|they +were)\b", "name the state: unchanged, before the run"),
}
COMPILED = {name: (re.compile(pattern), remedy) for name, (pattern, remedy) in PATTERNS.items()}
JOINT = r"[\s#/\"'fr*.]+"  # between the words of a sentence that goes on in the next line
HINTS = [  # a file without any of these has no finding; most files are read no further
    re.compile(hint)
    for hint in (
        r"Of\s", rf";{JOINT}of\b", r"What\s", r"y\s+(?:them|these|it):", "whom", "Whom", rf"one{JOINT}of\b", rf"is{JOINT}none\b",
        rf"are{JOINT}none\b", rf"w(?:as|ere){JOINT}none\b", rf"as{JOINT}(?:it|they){JOINT}w",
    )
]  # fmt: skip
PYTHON = re.compile(
    r'#(?P<comment>[^\n]*)|"""(?P<long>(?:\\.|[^\\])*?)"""|' + r"'''(?P<other>(?:\\.|[^\\])*?)'''"
    r'|"(?P<double>(?:\\.|[^"\\\n])*)"|' + r"'(?P<single>(?:\\.|[^'\\\n])*)'",
    re.DOTALL,
)
CPP = re.compile(
    r'//(?P<comment>[^\n]*)|/\*(?P<block>.*?)\*/|R"\((?P<raw>.*?)\)"|"(?P<double>(?:\\.|[^"\\\n])*)"'
    r"|'(?:\\.|[^'\\\n])+'|\d[\d']*",
    re.DOTALL,
)
HASH = re.compile(r"(?<![^\s])#(?P<comment>[^\n]*)")
READERS = {".py": PYTHON, ".cpp": CPP, ".h": CPP, ".sh": HASH, ".cmake": HASH}
WHOLE = frozenset({".md", ".yml", ".robot", ".j2"})  # read as one text
LEADER = re.compile(r"^[ \t]*(?:#(?!#)|\.\.\.)(?= )", re.MULTILINE)  # of a comment, of a Robot line that goes on
WORDS_MAX = 3  # of a string that is a key or a mark rather than a message
BETWEEN = re.compile(r"[ \t]*(?:\n[ \t]*)?[fr]{0,2}")  # what may stand between two parts of one text
BREAK = re.compile(r"\n[ \t]*(?=\n|[-*] |\d+\. |#+ |>|\||[a-z_]+: |[a-z_]+:\n)|\||\\n")
# What is quoted, and a condition of Ansible's.
QUOTED = re.compile(r"""`[^`]*`|\\?"[^"]*"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|\{[^{}]*\}|\w+[._][\w.]*\w is no[n]e\b""")
CODE = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)


def blank(text: str, by: str = " ") -> str:
    """A text of the same length and lines that says nothing."""
    return re.sub(r"[^\n]", by, text)


def texts(source: str, reader: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and messages with their offset; neighbours are one text, and what stands between them is blank."""
    start, text, end, is_prose = 0, "", 0, False
    for token in reader.finditer(source):
        kind = token.lastgroup
        if kind is None:
            continue
        before = source[token.start() : token.start(kind)]
        if text and BETWEEN.fullmatch(source, end, token.start()):
            text += blank(source[end : token.start()] + before)
        else:
            if is_prose or len(text.split()) > WORDS_MAX:
                yield start, text
            start, text, is_prose = token.start(), blank(before), False
        text += token[kind] + blank(source[token.end(kind) : token.end()])
        end, is_prose = token.end(), is_prose or kind not in ("double", "single")
    if is_prose or len(text.split()) > WORDS_MAX:
        yield start, text


def whole(path: PurePath, source: str) -> str:
    """All of a file that is prose, without blocks of code and without the marks at the beginning of lines."""
    return (CODE if path.suffix == ".md" else LEADER).sub(lambda found: blank(found[0]), source)


def paragraphs(start: int, text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs, items and cells of a text with their offset; what is quoted is crossed out."""
    begin = 0
    for end, following in [*((gap.start(), gap.end()) for gap in BREAK.finditer(text)), (len(text), 0)]:
        part = QUOTED.sub(lambda quoted: blank(quoted[0], "x"), text[begin:end])
        yield start + begin, part.replace("\n", " ")
        begin = following


def findings(path: PurePath, source: str) -> Iterator[str]:
    """Each finding in a file: its place, the words, and the remedy."""
    if not any(hint.search(source) for hint in HINTS):
        return
    reader = READERS.get(path.suffix)
    prose = texts(source, reader) if reader else [(0, whole(path, source))]
    for offset, text in prose:
        for begin, part in paragraphs(offset, text):
            for name, (pattern, remedy) in COMPILED.items():
                for match in pattern.finditer(part):
                    at = match.start(match.lastgroup or 0)
                    line = source.count("\n", 0, begin + at) + 1
                    words = re.sub(r" +", " ", part[at : at + 60]).strip()
                    yield f'{path}:{line}: not plain English, "{name}": {words}: {remedy}'


def is_read(path: PurePath) -> bool:
    return path.suffix == ".md" or (path.suffix in WHOLE.union(READERS) and RECORDED.isdisjoint(path.parts))


def faults(root: Path) -> Iterator[str]:
    """The findings in every file below `root` that git tracks."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    for path in map(PurePath, sorted(set(tracked.split("\0")))):  # a file in conflict stands there three times
        if is_read(path) and (root / path).is_file():
            yield from findings(path, (root / path).read_text(encoding="utf-8"))
