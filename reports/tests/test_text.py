"""Names in any script print, a character that no font has is named, and a control character is shown and never passed on."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
import weasyprint
from PIL import Image
from pypdf import PdfReader

from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.base.marks import breakable, unbroken, visible
from daq_bench.bench_report.output.legible import _installed, legible
from daq_bench.bench_report.qualification.render import HTML_NAME, PDF_NAME

Maker = Callable[..., Path]
HOSTILE = "disk\x1b[31mRED\x1b[0m\x00\x07 \u202egpj.exe\u202c \u2066x\u2069 \ufeffend\x85 \ue000table:smart\ue001"
SCRIPTS = {
    "Korean": "\uc11c\ubc84\uc800\uc7a5", "Japanese": "\u30b5\u30fc\u30d0\u65e5\u672c", "Chinese": "\u670d\u52a1\u5668\u5b58",
    "Arabic": "\u062e\u0635\u0642\u0645", "Hebrew": "\u05e9\u05dc\u05d5\u05dd", "Cyrillic": "\u0436\u0444\u044e\u0449",
    "Amharic": "\u1230\u122d\u1268\u122d",
}  # fmt: skip


def picture_of(text: str, tmp_path: Path) -> tuple[bytes, int]:
    """The dark pixels of a text as the PDF shows it, cut out, and how many they are."""
    html = f"<style>@page{{size:300px 80px;margin:5px}}body{{font:32px 'DejaVu Sans','Droid Sans Fallback';margin:0}}</style>{text}"
    file = tmp_path / "text.pdf"
    weasyprint.HTML(string=html).write_pdf(file)
    command = ["pdftoppm", "-r", "72", "-gray", "-png", str(file)]
    picture = Image.open(io.BytesIO(subprocess.run(command, check=True, capture_output=True).stdout)).convert("L")
    dark = picture.point(lambda value: 255 if value < 128 else 0)
    box = dark.getbbox()
    assert box is not None, f"{text}: nothing is drawn"
    cut = dark.crop(box)
    return cut.tobytes(), sum(value > 0 for value in cut.tobytes())


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_character_has_a_picture_of_its_own_or_is_named(script: str, tmp_path: Path) -> None:
    """A box for a missing character would be the same box for each of them."""
    assert shutil.which("pdftoppm"), "pdftoppm (package poppler-utils) is needed to look at the pixels"
    text = SCRIPTS[script]
    shown = legible(text)
    if shown == text:
        pictures = {character: picture_of(character, tmp_path) for character in text}
        assert len({cut for cut, _ in pictures.values()}) == len(set(text)), "two characters look alike"
        missing = picture_of("\U0010fffd", tmp_path)[0]  # no font has it: this is the box
        assert all(cut != missing for cut, _ in pictures.values())
    else:
        assert shown == "".join(f"[U+{ord(character):04X}]" for character in text), "all of a script, or nothing"


def test_no_font_that_draws_boxes_counts_as_one_that_has_a_character() -> None:
    assert not any("LastResort" in path for path in _installed())
    assert (
        legible("\U0001e900") == "[U+1E900]"
        and legible("\u0434\u0438\u0441\u043a \u30b5") == "\u0434\u0438\u0441\u043a \u30b5"
    )


def test_controls_are_shown_and_scripts_keep_their_joiners() -> None:
    assert visible("a\x1b[0m\x00\u202eb") == "a[U+001B][0m[U+0000][U+202E]b"
    assert visible("\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 a\u200bb\n\t\u202f") == (
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 a\u200bb\n\t\u202f"
    )


def test_control_characters_of_a_bundle_reach_no_report(bundle_with: Maker) -> None:
    root = bundle_with(telemetry=False)
    run = json.loads((root / "run.json").read_text(encoding="utf-8"))
    run["candidate"]["name"] = run["candidate"]["hostname"] = run["target"]["path"] = HOSTILE
    run["scenario"]["title"] = HOSTILE
    for drive in run["target"].get("drives", []):
        drive["model"] = HOSTILE
    (root / "run.json").write_text(json.dumps(run), encoding="utf-8")
    assert main(["render", str(root)]) == 0
    for name in (HTML_NAME, "report-data.json"):
        text = (root / name).read_bytes().decode("utf-8")
        found = {
            f"U+{ord(one):04X}" for one in text if unicodedata.category(one) in ("Cc", "Cf") and one not in "\n\t\u200b"
        }
        assert not found, f"{name} passes on {found}"
    html = (root / HTML_NAME).read_text(encoding="utf-8")
    assert "[U+001B][31mRED" in html and "[U+0000]" in html and "[U+202E]gpj.exe" in html
    assert (
        json.loads((root / "report-data.json").read_text(encoding="utf-8"))["front"]["run"]["candidate"]["name"]
        == HOSTILE
    )
    pdf = PdfReader(root / PDF_NAME)
    words = re.sub(r"\s+", "", "".join(page.extract_text() for page in pdf.pages))
    assert "[U+202E]gpj.exe" in words and "\x1b" not in words and "\u202e" not in words
    assert "\x1b" not in str(pdf.metadata and pdf.metadata.title)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("block_scan.seconds_per_repetition: 114", "block_<wbr>scan.<wbr>seconds_<wbr>per_<wbr>repetition: 114"),
        ("/srv/daq-bench/nand-raid0 <b>", "/srv/<wbr>daq-bench/<wbr>nand-raid0 &lt;b&gt;"),
        ("fs.aio-max-nr", "fs.<wbr>aio-max-nr"),
        ("a.b short_name", "a.b short_name"),
        ("2026-11-01T06:00:00Z 1234567890.123456", "2026-11-01T06:00:00Z 1234567890.123456"),
    ],
)
def test_a_long_name_breaks_behind_its_separators(text: str, html: str) -> None:
    assert breakable(text) == unbroken(text) == html


def test_the_unit_of_a_rate_stays_on_one_line_without_a_number() -> None:
    assert unbroken("run it with --more-of-it 1, a--b") == 'run it with <span class="q">--more-of-it</span> 1, a--b'
    assert unbroken("Throughput, GB/s") == 'Throughput, <span class="q">GB/s</span>'
    assert unbroken("9.243\u202fGB/s") == '<span class="q">9.243\u202fGB/s</span>'
