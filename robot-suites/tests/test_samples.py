"""`make samples`: one of each document from simulated servers; each page of each says so, and no bundle is left behind."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from axe import findings

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.samples import __main__ as command
from daq_bench.samples import documents, gallery
from daq_bench.samples.servers import ALPHA, MARK, Laboratory

DOCUMENTS = [
    "qualification-pass", "qualification-fail", "qualification-undecided", "qualification-rehearsal", "comparison", "lot", "trend",
    "nightly", "site", "dashboards",
]  # fmt: skip


def pages(pdf: Path) -> list[str]:
    words = ["pdftotext", "-layout", str(pdf), "-"]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout.split("\f")[:-1]


def test_the_gallery_shows_each_document_in_pictures_that_a_repository_can_carry() -> None:
    page = gallery.PAGE.read_text(encoding="utf-8")
    pictures = sorted(gallery.PICTURES.iterdir())
    assert [one.stem for one in pictures] == sorted(DOCUMENTS)
    assert all(f"images/samples/{one.name}" in page for one in pictures) and MARK in page
    assert len(DOCUMENTS) * 2_000 < sum(one.stat().st_size for one in pictures) <= gallery.BYTES_MAX
    assert all(one.read_bytes()[8:12] == b"WEBP" for one in pictures)


def test_a_folder_that_is_none_of_samples_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery.Tools, "found", staticmethod(lambda: gallery.Tools("pdftoppm", "chromium")))
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(BenchError, match=r"is no folder of samples, and is not replaced\. Name another with OUT=DIR"):
        command._make(tmp_path, 1)
    assert (tmp_path / "mine").read_text() == "kept"


def test_a_missing_tool_is_named_before_anything_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BenchError, match=r"pdftoppm and chromium: not on PATH\. Run `make packages-test`"):
        gallery.Tools.found()


def test_runs_of_one_server_differ_from_day_to_day_and_are_the_same_each_time() -> None:
    rates = [ALPHA.spec(number).drives[0].cell_rate for number in (1, 2, 1)]
    assert rates[0] == rates[2] != rates[1] and abs(rates[0] / rates[1] - 1) < 0.05
    assert ALPHA.spec(1).name == f"{MARK}-alpha"


@pytest.mark.campaign
def test_each_page_of_each_document_says_that_it_is_simulated(tmp_path: Path) -> None:
    laboratory, out = tmp_path / "laboratory", tmp_path / "out"
    laboratory.mkdir()
    out.mkdir()
    samples = list(documents.make(Laboratory(laboratory, 2), out))
    assert [one.name for one in samples] == DOCUMENTS
    words = {"pass": "PASS", "fail": "FAIL", "undecided": "does not decide yet", "rehearsal": "REHEARSAL FAILED"}
    for one in samples:
        if one.shown.suffix == ".pdf":
            set_ = pages(one.shown)
            assert len(set_) > 1 and all(MARK in page for page in set_), one.name
            assert words.get(one.name.partition("-")[2], "") in set_[0]
            if one.name.startswith("qualification"):  # page 1 holds the whole table of requirements
                assert re.findall(r"^ *(SNB-\d\d) ", set_[0], re.MULTILINE) == [
                    f"SNB-{number:02d}" for number in range(1, 12)
                ]
                assert set_[1].split("\n", 2)[2].split()[0] == "Contents"
        elif one.name != "dashboards":  # it shows no run
            told = one.shown.read_text(encoding="utf-8")
            assert MARK in told and (
                one.name != "nightly" or f"\u00b7 {MARK}" in told
            )  # beside its badge and on each printed page
        page = one.shown.with_suffix(".html")
        for width, dark in ((390, True), (1280, False)):
            assert not findings(page, width, dark), (page.name, width, dark)
    assert "NOT TOLD APART" in pages(out / "comparison" / "comparison.pdf")[0]
    assert "8 OF 8 PASS" in pages(out / "lot" / "lot.pdf")[0]
    assert not [file for file in out.rglob("*") if file.name in ("run.json", "verdict.json", "MANIFEST.sha256")]
    made = tmp_path / "pictures"
    gallery.write(samples, gallery.Tools.found(), made, tmp_path / "samples.md")
    assert (tmp_path / "samples.md").read_text() == gallery.text_of(samples) == gallery.PAGE.read_text(encoding="utf-8")
    assert REPOSITORY not in made.parents
