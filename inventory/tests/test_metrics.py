"""Definitions of metrics are parsed once for each text, and what a file says now is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.profiles import metrics, yaml_source
from daq_bench.bench_model.profiles.metrics import load_metrics

SHIPPED = Path(__file__).resolve().parents[1] / "metrics.yml"


def copy(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def short(comment: str = "") -> str:
    """Three lines of the shipped file that are a whole one."""
    return (
        f"version: 1\nmeasurements: {{}}\nresults:\n  a.b: {{description: d{comment}, unit: B/s, file: results/a.json, "
        'path: "b"}\n'
    )


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were parsed."""
    found: list[Path] = []
    monkeypatch.setattr(metrics, "_KNOWN", {})
    real = yaml_source.parsed
    monkeypatch.setattr(yaml_source, "parsed", lambda file, text: (found.append(file), real(file, text))[1])
    return found


def test_a_text_that_is_known_is_not_parsed_again_wherever_it_stands(parsed: list[Path], tmp_path: Path) -> None:
    one, two = copy(tmp_path, "one.yml", short()), copy(tmp_path, "two.yml", short())
    first = load_metrics(one)
    first.clear()  # a reader's own copy
    assert list(load_metrics(two)) == ["a.b"] and load_metrics(one) == load_metrics(two)
    assert parsed == [one]


def test_a_changed_file_is_read_as_it_is_now(parsed: list[Path], tmp_path: Path) -> None:
    file = copy(tmp_path, "one.yml", short())
    assert load_metrics(file)["a.b"].unit == "B/s"
    copy(tmp_path, "one.yml", short().replace("B/s", "count"))
    assert load_metrics(file)["a.b"].unit == "count"
    file.unlink()
    with pytest.raises(ProfileError, match="there is no such file"):
        load_metrics(file)


def test_a_broken_file_is_refused_each_time_under_its_own_name(parsed: list[Path], tmp_path: Path) -> None:
    for name in ("one.yml", "two.yml"):
        with pytest.raises(ProfileError, match=name):
            load_metrics(copy(tmp_path, name, short().replace("unit: B/s", "unit: furlong")))
    assert len(parsed) == 2


def test_only_the_newest_texts_are_kept(parsed: list[Path], tmp_path: Path) -> None:
    for number in [*range(metrics.MOST_KNOWN + 1), 0]:
        load_metrics(copy(tmp_path, f"{number}.yml", short(str(number))))
    assert len(parsed) == metrics.MOST_KNOWN + 2 and len(metrics._KNOWN) == metrics.MOST_KNOWN
