"""`make lint-docs` finds sentences that are not plain English (.ci/english.py), and leaves quoted and recorded text alone."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path, PurePath
from types import ModuleType

import pytest

from daq_bench.rig.base.settings import Layout

# Quoted, so that the lint lets this file pass.
BAD = {
    name: sentence.strip('"')
    for name, sentence in (
        ("Of ...", '"Of 8 ratios 3 differ."'),
        ("Of ...", '"It names the drives; of older ones it says less."'),
        ("What ... is ...", '"What was before the load is not counted."'),
        ("What ... is ...", '"The run ends. What it wrote stays."'),
        ("by them:", '"Nothing is ranked by them: they do not count."'),
        ("whom", '"It shows who slows whom down."'),
        ("is none", '"A value that is none is left out."'),
        ("none of", '"It is read by none of them."'),
        ("as it was", '"The candidate stays as it was."'),
    )
}
FORMS = {  # a file's name, and what stands there; the sentence begins in line 2
    "page.md": "# Page\n{}\n",
    "list.md": "A list:\n- {}\n",
    "table.md": "| a | b |\n| c | {} |\n",
    "comment.py": "x = 1\n# {}\ny = 'it'\n",
    "behind.py": "x = 1\nx = 2  # {}\n",
    "docstring.py": 'def f() -> None:\n    """{}"""\n',
    "message.py": 'value = 1\nraise ValueError(f"{}")\n',
    "comment.cpp": "const int x = 1'000;\n// {}\nconst char y = '\"';\n",
    "block.h": "int x;\n/* {} */\n",
    "message.cpp": 'int x;\nthrow Error("{}");\n',
    "comment.yml": "key: value\n# {}\n",
    "described.yml": "metric:\n  description: {}\n",
    "suite.robot": "*** Settings ***\nDocumentation    {}\n",
    "script.sh": "true\n# {}\n",
}


@pytest.fixture
def english(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Layout().repository / ".ci"))
    return importlib.import_module("english")


def found(english: ModuleType, name: str, text: str) -> list[str]:
    return list(english.findings(PurePath(name), text))


@pytest.mark.parametrize("name", FORMS)
def test_each_pattern_is_found_in_each_kind_of_prose(english: ModuleType, name: str) -> None:
    assert set(BAD) == set(english.PATTERNS)
    for pattern, sentence in BAD.items():
        says = found(english, name, FORMS[name].replace("{}", sentence))
        assert [one.startswith(f'{name}:2: not plain English, "{pattern}": ') for one in says] == [True], (
            pattern,
            says,
        )
        assert says[0].endswith(f": {english.PATTERNS[pattern][1]}")
    assert found(english, name, FORMS[name].replace("{}", "3 of 8 ratios differ.")) == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.md", "A page\nthat is read by none\nof us.\n", 2),
        ("a.py", "# It is read by none\n# of them.\n", 1),
        ("a.py", 'x = (\n    "It is read by none"\n    f" of them."\n)\n', 2),
        ("a.py", '"""Reads.\n\n    Its value is\n    none."""\n', 3),
        ("a.cpp", 'f("It is read by none "\n  "of them.");\n', 1),
        ("a.h", "// It is read by none\n// of them.\n", 1),
        ("a.yml", "# It is read by none\n# of them.\n", 1),
        ("a.robot", "Documentation    It is read by none\n...    of them.\n", 1),
    ],
)
def test_a_sentence_goes_on_in_the_next_line(english: ModuleType, name: str, text: str, line: int) -> None:
    says = found(english, name, text)
    assert len(says) == 1 and says[0].startswith(f"{name}:{line}: "), says


def test_the_finding_names_the_place_the_words_and_the_remedy(english: ModuleType) -> None:
    remedy = english.PATTERNS["whom"][1]
    assert remedy.startswith("name the person or the thing")
    (finding,) = found(english, "docs/a.md", f"# Title\n\nThe ratios follow. {BAD['whom']}\n")
    assert finding.startswith('docs/a.md:3: not plain English, "whom": ') and finding.endswith(f" down.: {remedy}")
    twice = f"{BAD['whom']}\n\n{BAD['is none']}\n"
    assert [one.split(" ")[0] for one in found(english, "a.md", twice)] == ["a.md:1:", "a.md:3:"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", 'Write "Of 8 ratios 3 differ" never.\n'),
        ("a.md", "Write `none of them` never.\n"),
        ("a.md", "Never “as it was”.\n"),
        ("a.md", f"Text:\n\n```\n{BAD['as it was']}\n```\n\nMore.\n"),
        ("a.md", "What is a bundle, and what is in it? A folder.\n"),
        ("a.md", "## What is the same, and what is not\n"),
        ("a.md", "Of course. The reason why there is none.\n"),
        ("a.md", "It shows 3 of 8 runs; of which 2 count.\n"),
        ("a.py", "if x is None or none_of(them):\n    was_none = as_it_was\n"),
        ("a.py", "x = \"it says 'none of them' there\"  # and 'as it was' here\n"),
        ("a.py", 'x = f"it is {none of them}"\n'),
        ("a.py", "x = 'so is'\ny = 'none'\n"),
        ("a.py", '"""What a plan says of a request: its cost, and what it is."""\n'),
        ("a.cpp", 'bool x = is_none;  // says "none of them" there\n'),
        ("a.yml", "when: storage_found.target.failed is none\n"),
        ("agents/tests/fixtures/tool.yml", f"# {BAD['none of']}\n"),
        ("agents/tests/recorded/tool.py", f"# {BAD['none of']}\n"),
        ("reports/tests/golden/report.txt", BAD["none of"]),
        ("a.json", BAD["as it was"]),
    ],
)
def test_exempt_are_quotations_code_and_recorded_text(english: ModuleType, name: str, text: str) -> None:
    assert not english.is_read(PurePath(name)) or found(english, name, text) == []


def test_the_pairs_of_the_contributors_guide_are_quoted(english: ModuleType) -> None:
    guide = (Layout().repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    pair = '"who slows whom down"'
    assert pair in guide and found(english, "CONTRIBUTING.md", guide) == []
    assert found(english, "CONTRIBUTING.md", guide.replace(pair, BAD["whom"])) != []


def test_lint_docs_fails_for_a_tracked_file_alone(
    english: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = importlib.import_module("docs")
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "faults", lambda: iter(()))
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    page, removed = tmp_path / "page.md", tmp_path / "removed.md"
    for file in (page, removed):
        file.write_text(f"{BAD['none of']}\n", encoding="utf-8")
    assert docs.main() == 0 and "page.md" not in capsys.readouterr().out  # git does not know it yet
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    removed.unlink()
    assert docs.main() == 1
    assert capsys.readouterr().out.startswith('page.md:1: not plain English, "none of": ')
    page.write_text("Nobody reads it.\n", encoding="utf-8")
    assert docs.main() == 0
