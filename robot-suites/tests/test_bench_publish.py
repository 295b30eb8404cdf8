"""The table in a document: only claims get there, between the marks, and nothing is half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_fixtures import results_of

from daq_bench.bench_rounds import publish

NAMES = ("agent", "ingest")
MARKED = f"# Agent\n\n{publish.BEGIN} `make` -->\nold\n{publish.END}\n\n### Run\n"


def measured(part: str, reservations: list[str]) -> dict[str, Any]:
    met = {"text": "a cost", "bound": 1.5, "value": 0.9, "met": True, "misses": [], "undecided": ""}
    return results_of(part, reservations, criteria=[met])


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    path = tmp_path / "README.md"
    path.write_text(MARKED)
    return path


def run(readme: Path, *documents: dict[str, Any]) -> int:
    for one in documents:
        (readme.parent / f"{one['part']}.json").write_text(json.dumps(one))
    return publish.main([f"--write={readme}", f"--parts={','.join(NAMES)}", f"--results={readme.parent}"])


def test_measurements_stand_between_the_marks_and_can_be_renewed(readme: Path) -> None:
    parts = [measured(name, []) for name in NAMES]
    assert run(readme, *parts) == 0
    text = readme.read_text()
    assert "old" not in text and text.startswith("# Agent\n") and text.endswith(f"{publish.END}\n\n### Run\n")
    assert "#### agent: title of agent" in text and "#### ingest: title of ingest" in text
    assert "| a cost | 1.5 | 0.9 | met |" in text and "a CPU, 2 CPUs" in text and "2026-01-01" in text
    assert run(readme, *parts) == 0
    assert readme.read_text() == text


def test_what_is_no_claim_is_refused(readme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(readme, measured("agent", [])) == 2
    assert "part ingest was not measured: make bench PARTS=agent,ingest" in capsys.readouterr().err
    assert run(readme, measured("ingest", ["quick look"])) == 2
    assert "part ingest is no claim: quick look" in capsys.readouterr().err
    assert readme.read_text() == MARKED


def test_a_file_without_marks_is_left_alone(readme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme.write_text("# Agent\n")
    assert run(readme, *[measured(name, []) for name in NAMES]) == 2
    assert "must have one line that begins with" in capsys.readouterr().err
    assert readme.read_text() == "# Agent\n"


def test_a_part_with_many_points_shows_its_criteria_alone(readme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = {**measured("agent", []), "points": [{"label": str(number), "errors": {}} for number in range(13)]}
    assert run(readme, many, measured("ingest", [])) == 0
    assert "13 points, not shown here." in readme.read_text() and "| a cost | 1.5 |" in readme.read_text()
    assert publish.main([f"--write={readme}", "--parts=agent,agents"]) == 2
    assert "no part agents. Did you mean agent?" in capsys.readouterr().err


@pytest.mark.parametrize("readme", ["agents/README.md", "native-writer/bench/README.md"])
def test_the_files_have_the_marks(readme: str) -> None:
    file = Path(__file__).resolve().parents[2] / readme
    assert "| x |" in publish.replaced(file.read_text(), "| x |\n", file)
