"""The static site: what stands in it, what must not, and its filter in a real Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlencode

import pytest
from axe import findings
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.nights import Job, NightDocument, NightRun
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.site import MARK, build

CHROMIUM = shutil.which("chromium")


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Two candidates: one that passed three times, the last time with other firmware; one that failed."""
    for number, firmware in ((1, "1.0"), (2, "1.0"), (3, "1.1")):
        write_night(tmp_path / "runs", NightPlan(number, rate=10.0 + number / 10, firmware=firmware))
    write_night(tmp_path / "runs", NightPlan(4, candidate="server-b", scenario="dune-snb", lost=1.0))
    for bundle in (tmp_path / "runs").iterdir():
        (bundle / "report.html").write_text("<title>report</title>", encoding="utf-8")
    return tmp_path


def made(lab: Path, copy: bool = False) -> tuple[str, list[str]]:
    pages, *_ = build([lab / "runs"], lab / "nightly", lab / "site", copy)
    return (lab / "site" / "index.html").read_text(encoding="utf-8"), pages


def rows(page: str) -> list[dict[str, str]]:
    """The rows of the runs, by their data."""
    found = re.findall(r"<tr (data-candidate=.*?)>", page)
    return [{key: unescape(value) for key, value in re.findall(r'data-(\w+)="(.*?)"', row)} for row in found]


def test_every_run_stands_there_newest_first_with_its_documents(lab: Path) -> None:
    index, pages = made(lab)
    assert [(row["candidate"], row["word"], row["day"]) for row in rows(index)] == [
        ("server-b", "FAIL", "2026-03-05"),
        *(("server-a", "PASS", f"2026-03-0{day}") for day in (4, 3, 2)),
    ]
    for page in pages:
        text = (lab / "site" / page).read_text(encoding="utf-8")
        for address in re.findall(r'href="(.*?)"', text):
            assert (lab / "site" / unquote(unescape(address))).is_file(), address
    assert "missed R-03 Nothing is lost: measured 1, bound = 0" in index


def test_a_candidate_has_its_drives_its_values_over_time_and_its_runs(lab: Path) -> None:
    _, pages = made(lab)
    page = (lab / "site" / next(one for one in pages if "server-a" in one)).read_text(encoding="utf-8")
    assert len(rows(page)) == 3
    assert "firmware 1.1" in page and "2026-03-02 to 2026-03-04, 3 runs" in page
    (points,) = re.findall(r'aria-label="R-01 over 3 runs, newest 10.3 GB/s">.*?points="(.*?)"', page)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert heights == sorted(heights, reverse=True)  # a rate that grew
    other = (lab / "site" / next(one for one in pages if "server-b" in one)).read_text(encoding="utf-8")
    assert "there are not yet so many" in other


@pytest.mark.parametrize("how", ["altered", "unsealed", "unfinished", "verdict", "empty"])
def test_a_run_that_nobody_may_rest_on_is_set_apart_and_never_passed(lab: Path, how: str) -> None:
    bundle = lab / "runs" / NightPlan(3).run_id
    if how == "altered":
        (bundle / "facts" / "host.json").write_text("{}", encoding="utf-8")
    elif how == "unsealed":
        (bundle / "MANIFEST.sha256").unlink()
    elif how == "unfinished":
        (bundle / "verdict.json").unlink()
    elif how == "verdict":
        verdict = json.loads((bundle / "verdict.json").read_text(encoding="utf-8"))
        (bundle / "verdict.json").write_text(
            json.dumps({**verdict, "outcome": "PASS", "reasons": ["x"]}), encoding="utf-8"
        )
    else:
        shutil.rmtree(bundle)
        bundle.mkdir()
    index, _ = made(lab)
    assert len(rows(index)) == 3
    apart = index[index.index("Not counted") :]
    assert bundle.name in apart
    assert "1 folder." in apart


def test_hostile_names_are_text_and_pages_of_two_candidates_never_one_file(lab: Path) -> None:
    evil = '<script>alert("1")</script>&../../x\u202e'
    for number, name in ((5, evil), (6, "a b"), (7, "a/b")):
        write_night(
            lab / "runs", NightPlan(number, candidate=name, scenario='"><img src=x onerror=alert(1)>'), f"run-{number}"
        )
    index, pages = made(lab)
    assert "<script>alert" not in index and "<img" not in index
    assert "\u202e" not in index and "[U+202E]" in index
    assert len(set(pages)) == len(pages) == 6
    assert all(re.fullmatch(r"index\.html|candidate-[A-Za-z0-9._-]+\.html", page) for page in pages)
    assert sorted(one.name for one in (lab / "site").iterdir()) == sorted([*pages, MARK])


def test_what_was_deleted_is_gone_when_it_is_made_again(lab: Path) -> None:
    made(lab)
    shutil.rmtree(lab / "runs" / NightPlan(4, candidate="server-b", scenario="dune-snb").run_id)
    index, pages = made(lab)
    assert "server-b" not in index
    assert sorted(one.name for one in (lab / "site").iterdir()) == sorted([*pages, MARK])


def test_a_folder_of_somebody_else_is_left_alone(lab: Path) -> None:
    mine = lab / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("mine", encoding="utf-8")
    (lab / "link").symlink_to(mine)
    for out in (mine, lab / "link", lab, lab / "runs", lab / "runs" / "site", mine / "index.html"):
        with pytest.raises(BenchError, match="--output"):
            build([lab / "runs"], lab / "nightly", out)
    assert (mine / "index.html").read_text(encoding="utf-8") == "mine"
    assert not any(one.name.startswith(".") for one in lab.iterdir())


def test_a_fault_while_it_is_made_leaves_the_old_site(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, _ = made(lab)
    monkeypatch.setattr("daq_bench.bench_report.site._swap", lambda made, out: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        made(lab)
    assert (lab / "site" / "index.html").read_text(encoding="utf-8") == index
    assert sorted(one.name for one in lab.iterdir()) == ["runs", "site"]


def test_with_its_documents_it_can_be_moved(lab: Path) -> None:
    made(lab, copy=True)
    shutil.rmtree(lab / "runs")
    moved = lab / "elsewhere"
    (lab / "site").rename(moved)
    for page in moved.glob("*.html"):
        for address in re.findall(r'href="(.*?)"', page.read_text(encoding="utf-8")):
            assert (moved / unquote(unescape(address))).is_file(), address


def test_a_link_is_neither_shown_nor_copied(lab: Path) -> None:
    """The reports' folder lies beside the evidence's seal: whoever may write there could lead a reader out of the bundle."""
    outside = lab / "outside"
    outside.mkdir()
    (outside / "log.html").write_text("somebody's", encoding="utf-8")
    bundle = lab / "runs" / NightPlan(3).run_id
    (bundle / "robot").symlink_to(outside)
    (bundle / "report.html").unlink()
    (bundle / "report.html").symlink_to(outside / "log.html")
    made(lab, copy=True)
    assert not any("somebody's" in one.read_text(encoding="utf-8") for one in (lab / "site").rglob("*.html"))


def test_a_night_is_no_better_than_its_runs_are_now(lab: Path) -> None:
    night = lab / "nightly" / "20260304T020000Z-nightly"
    night.mkdir(parents=True)
    job = Job("server-a")
    runs = [
        as_document(NightRun(job, "", None, "PASS", "PASS", "", name, None, "PASS", False, 1.0, None, []))
        for name in (NightPlan(3).run_id, "gone", None)
    ]
    night_of = NightDocument(
        1, night.name, "finished", "2026-03-04", "2026-03-05", "PASS", 0, "all is well", {}, [job], [], []
    )
    document = {**as_document(night_of), "runs": runs[:1]}
    (night / "nightly.json").write_text(json.dumps(document), encoding="utf-8")
    assert "all is well" in made(lab)[0] and "by its runs as they are now" not in made(lab)[0]
    (night / "nightly.json").write_text(json.dumps({**document, "runs": runs}), encoding="utf-8")
    assert "its nightly.json says PASS; by its runs as they are now it is INADMISSIBLE" in made(lab)[0]
    (night / "nightly.json").write_text("{", encoding="utf-8")
    assert "nightly.json cannot be read" in made(lab)[0]


def test_without_any_run_the_site_says_so(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert (
        main(["site", str(tmp_path / "runs"), "--nights", str(tmp_path / "nightly"), "-o", str(tmp_path / "site")]) == 0
    )
    assert "There is no run that others may rest on." in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("wrong", ["missing", "file"])
def test_a_place_that_is_no_folder_is_named_and_not_passed_over(
    lab: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "file").write_text("", encoding="utf-8")
    site = ["-o", str(lab / "site")]
    assert main(["site", str(lab / "runs"), str(lab / wrong), *site]) == 2
    assert f"{lab / wrong} is no folder. Name one of run bundles" in capsys.readouterr().err
    assert main(["site", str(lab / "runs"), "--nights", str(lab / "file"), *site]) == 2
    assert f"{lab / 'file'}: is no folder. Name the folder of nights with --nights" in capsys.readouterr().err
    assert not (lab / "site").exists()


def in_chromium(page: Path, tmp_path: Path, **chosen: str) -> str:
    """The page as the browser has it when its script has run. Nothing else than the page may be fetched: its policy forbids it."""
    assert CHROMIUM is not None, (
        "no chromium on PATH: `make packages-test`; on Ubuntu, which has none: `snap install chromium`"
    )
    words = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'chromium'}",
        "--virtual-time-budget=5000",
    ]
    address = f"{page.as_uri()}#{urlencode(chosen)}"
    return subprocess.run(
        [*words, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True
    ).stdout


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ({}, 4),
        ({"candidate": "server-a"}, 3),
        ({"word": "FAIL"}, 1),
        ({"scenario": "dune-snb", "candidate": "server-a"}, 0),
        ({"from": "2026-03-03", "to": "2026-03-04"}, 2),
        ({"candidate": "nemo"}, 4),  # no such choice: the filter stays at all
        ({"__proto__": "x", "word": "PASS"}, 3),
    ],
)
def test_the_filter_in_a_real_browser(lab: Path, tmp_path: Path, chosen: dict[str, str], shown: int) -> None:
    made(lab)
    dom = in_chromium(lab / "site" / "index.html", tmp_path, **chosen)
    found = re.findall(r"<tr data-candidate=[^>]*>", dom)
    assert len(found) == 4
    assert len([row for row in found if " hidden" not in row]) == shown
    assert f">{shown} of 4 runs<" in dom
    assert re.search(r'<form id="filter">', dom)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_on_the_index_and_on_a_candidates_page(lab: Path, width: int, dark: bool) -> None:
    made(lab)
    for page in (lab / "site" / "index.html", next((lab / "site").glob("candidate-*.html"))):
        assert findings(page, width, dark) == [], page.name


def test_a_script_that_is_not_the_sites_own_does_not_run(lab: Path, tmp_path: Path) -> None:
    """The policy names one script by its hash."""
    made(lab)
    page = lab / "site" / "index.html"
    page.write_text(
        page.read_text(encoding="utf-8").replace("</body>", "<script>document.title = 'taken'</script></body>"),
        encoding="utf-8",
    )
    dom = in_chromium(page, tmp_path)
    assert "<title>Runs - DAQ storage bench</title>" in dom
