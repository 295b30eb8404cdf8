"""The files that restoration needs outlive build/, and `make clean` refuses while a candidate is still to be restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.rig import cli
from daq_bench.rig.base.settings import Layout


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    made = Layout(tmp_path)
    monkeypatch.setattr(cli.candidate, "Layout", lambda: made)
    return made


def write(file: Path) -> Path:
    file.parent.mkdir(parents=True)
    file.write_text("{}", encoding="utf-8")
    return file


def test_the_values_from_before_are_not_below_build_and_those_of_an_earlier_version_are_found(layout: Layout) -> None:
    assert not layout.state_directory("new").is_relative_to(layout.build)
    old = write(layout.build / "state" / "old" / "bios-before.json")
    assert layout.state_directory("old") == old.parent


@pytest.mark.parametrize("place", ["state", "build/state"])
@pytest.mark.parametrize(
    "name", ["bios-before.json", "fans-before.json", "tuning-before.json", "restarting.json", "fans-lease.json"]
)
def test_clean_refuses_and_names_the_candidate(
    layout: Layout, place: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(layout.repository / place / "server-7" / name)
    assert cli.main(["clean"]) == 2
    said = capsys.readouterr().err
    assert "nothing was removed: candidates are still tuned by the bench: server-7" in said
    assert name in said
    assert file.exists()


def test_clean_keeps_the_accounts_of_write_budgets(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    write(layout.build / "state" / "old" / "endurance" / "trial.json")
    assert cli.main(["clean"]) == 0
    assert (layout.state_directory("old") / "endurance" / "trial.json").exists()
    assert not layout.state_directory("old").is_relative_to(layout.build)
    write(layout.build / "state" / "old" / "endurance" / "trial.json")
    assert cli.main(["clean"]) == 2
    assert "both hold accounts" in capsys.readouterr().err
