"""Reports that can be checked: every page carries the evidence's hash, and every number is recomputed from the bundle."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pypdf import PdfReader

sys.path.insert(0, str(Path(__file__).parent))

from bundle_factory import make
from factory_knobs import Knobs

from daq_bench.bench_model.bundle.files import survey
from daq_bench.bench_model.bundle.provenance import MANIFEST, REPORT_DATA, REPORTS, digest_of, is_evidence, manifest_of
from daq_bench.bench_report.output import typeset
from daq_bench.bench_report.qualification import check
from daq_bench.bench_report.qualification.check import compared
from daq_bench.bench_report.qualification.render import load_for, render, reports_of, to_html

SIGNER = "ssh-ed25519 SHA256:abc"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A sealed bundle with its reports, and the result of a second rendering (each takes seconds)."""
    root = make(tmp_path_factory.mktemp("rendered") / "run-1", Knobs(temperature=True))
    (root / MANIFEST).write_bytes(manifest_of(root, [name for name in survey(root).files if is_evidence(name)]))
    render(root, SIGNER)
    return root, reports_of(root, SIGNER)


@pytest.fixture
def bundle(tmp_path: Path, rendered: tuple[Path, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it; rendering again gives what it gave before."""
    monkeypatch.setattr(check, "reports_of", lambda *_: rendered[1])
    return Path(shutil.copytree(rendered[0], tmp_path / "run-1"))


def data_of(bundle: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bundle / REPORT_DATA).read_text(encoding="utf-8"))
    return found


def figure_in(data: dict[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """Its path in the document, and its content."""
    return next(
        (f"sections[{at}].parts[{place}].content", part["content"])
        for at, section in enumerate(data["sections"])
        for place, part in enumerate(section["parts"])
        if part["kind"] == "figure" and part["content"]["name"] == name
    )


def store(bundle: Path, data: dict[str, Any]) -> None:
    (bundle / REPORT_DATA).write_text(json.dumps(data), encoding="utf-8")


def test_the_same_bundle_gives_the_same_bytes(rendered: tuple[Path, dict[str, bytes]]) -> None:
    root, again = rendered
    assert {name: (root / name).read_bytes() == again[name] for name in REPORTS} == dict.fromkeys(REPORTS, True)


def test_every_page_carries_the_hash_of_the_manifest(rendered: tuple[Path, dict[str, bytes]]) -> None:
    root, _ = rendered
    digest = digest_of(root / MANIFEST)
    pdf = PdfReader(root / "report.pdf")
    assert [digest in page.extract_text() for page in pdf.pages] == [True] * len(pdf.pages)
    html = (root / "report.html").read_text(encoding="utf-8")
    assert digest in html and f"signed by the key {SIGNER}" in html
    assert re.search(r"Evidence</th>\s*<td[^>]*>unsigned", html)


def test_the_numbers_are_attached_to_the_pdf(rendered: tuple[Path, dict[str, bytes]]) -> None:
    root, _ = rendered
    attached = PdfReader(root / "report.pdf").attachments
    assert attached[REPORT_DATA][0] == (root / REPORT_DATA).read_bytes()


def test_the_plotted_points_are_the_bundles(rendered: tuple[Path, dict[str, bytes]]) -> None:
    root, _ = rendered
    data = data_of(root)
    _, host = figure_in(data, "host")
    line = next(one for one in host["traces"] if one["panel"] == "Temperature" and "Composite" in one["series"])
    text = (root / "telemetry/points.lp").read_text(encoding="utf-8")
    told = [float(value) for value in re.findall(r"temperature_degc=([0-9.]+)", text)]
    assert line["y"] == told and len(line["x"]) == len(told)
    scan = json.loads((root / "results/block_scan.json").read_text(encoding="utf-8"))["points"]
    drawn = [
        one
        for section in data["sections"]
        for part in section["parts"]
        if part["kind"] == "figure"
        for one in part["content"]["traces"]
        if one["kind"] == "line"
    ]
    rates = {round(point["throughput_bytes_per_s"]) for point in scan if point["admissible"]}
    assert any(
        rates <= {round(y * scale) for y in one["y"] if y is not None} for one in drawn for scale in (1.0, 1e9, 2**30)
    )


def test_an_untouched_report_has_no_difference(bundle: Path) -> None:
    found = compared(bundle, SIGNER)
    assert (found["problems"], found["notes"]) == ([], [])
    assert re.match(r"\d{3,} texts and numbers, \d{3,} plotted values", found["summary"])


def test_one_plotted_number_more_or_less_is_named(bundle: Path) -> None:
    data = data_of(bundle)
    path, host = figure_in(data, "host")
    place = next(index for index, one in enumerate(host["traces"]) if one["kind"] == "line")
    host["traces"][place]["y"][1] += 1e-9
    store(bundle, data)
    found = compared(bundle, SIGNER)["problems"]
    assert found[0].startswith(f"{REPORT_DATA}: {path}.traces[{place}].y[1] is ")
    assert found[1] == f"{REPORT_DATA}: 1 numbers or texts are not what the evidence gives"


def test_a_changed_word_in_the_html_is_named(bundle: Path) -> None:
    file = bundle / "report.html"
    file.write_text(file.read_text(encoding="utf-8").replace("INADMISSIBLE", "PASS", 1), encoding="utf-8")
    found = compared(bundle, SIGNER)["problems"]
    assert len(found) == 1 and found[0].startswith("report.html: does not say what the evidence gives")


def test_a_changed_curve_is_noticed_though_no_word_changed(bundle: Path) -> None:
    file = bundle / "report.html"
    text = file.read_text(encoding="utf-8")
    drawn = re.search(r'<path d="M ([0-9.]+)', text)
    assert drawn is not None
    file.write_text(text.replace(drawn[0], f'<path d="M 9{drawn[1]}', 1), encoding="utf-8")
    assert compared(bundle, SIGNER)["problems"] == [
        "report.html: the same words, but drawn or set differently from what the evidence gives"
    ]


def test_another_pdf_is_noticed(bundle: Path, rendered: tuple[Path, dict[str, bytes]]) -> None:
    (bundle / "report.pdf").write_bytes(rendered[1]["report.pdf"][:5000])
    assert "report.pdf" in compared(bundle, SIGNER)["problems"][0]
    (bundle / "report.pdf").unlink()
    assert compared(bundle, SIGNER)["problems"] == ["report.pdf: cannot be read: the bundle has no such file"]


def test_other_libraries_explain_a_layout_but_no_number(bundle: Path) -> None:
    data = data_of(bundle)
    data["made_by"]["matplotlib"] = "3.0"
    store(bundle, data)
    file = bundle / "report.html"
    file.write_text(file.read_text(encoding="utf-8").replace('<path d="M ', '<path d="M  ', 1), encoding="utf-8")
    found = compared(bundle, SIGNER)
    assert found["problems"] == []
    assert any("rendered with matplotlib 3.0 (here " in note for note in found["notes"])
    assert "report.html: the same words, set by other versions; its layout cannot be compared" in found["notes"]
    data["document"]["title"] = "Another"
    store(bundle, data)
    problems = compared(bundle, SIGNER)["problems"]
    assert "check with that to tell another formula from an alteration" in problems[-1]


def test_a_report_that_lost_its_signature_is_noticed(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says that it is signed: an unsigned one has other numbers."""
    monkeypatch.undo()
    monkeypatch.setattr(typeset, "pages_of", lambda *_: SimpleNamespace(pages=[]))  # setting them takes seconds
    monkeypatch.setattr(typeset, "to_pdf", lambda *_: (bundle / "report.pdf").read_bytes())
    found = compared(bundle, None)["problems"]
    assert any("signed by the key" in one and "unsigned" in one for one in found)


def test_reports_on_an_altered_or_unsealed_bundle_say_so(
    rendered: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    root = rendered[0]
    assert "ALTERED since it was sealed: 2 files" in to_html(load_for(root, altered=2))
    bare = Path(shutil.copytree(root, tmp_path / "bare"))
    (bare / MANIFEST).unlink()
    html = to_html(load_for(bare))
    assert "not sealed: the run left no manifest" in html and "signed by the key" not in html


def test_the_renderers_hash_covers_every_module_that_a_report_is_made_by() -> None:
    """A section that was altered may lie in a workload's own folder."""
    text = (
        "import sys; from pathlib import Path; from daq_bench.bench_report.document.made_by import folders\n"
        "import daq_bench.bench_report.qualification.render\n"
        "files = [one.__file__ for name, one in sys.modules.items() if name.startswith('daq_bench.') and one.__file__]\n"
        "print(*(file for file in files if not any(Path(file).is_relative_to(one) for one in folders())), sep='\\n')\n"
        "assert any('workloads/lan/report' in file for file in files)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
