"""The lot report from bundles to paper: acceptance, tolerance, the limiting drive, silent differences, clusters, refusals."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evidence_factory import conclude, seal
from pypdf import PdfReader
from tender_factory import MODEL, RATE, START, Run, drive

from daq_bench.bench_model.bundle import bundle_state
from daq_bench.bench_model.documents.lot import AcceptancePlan, Lot, LotClaim, LotDrive, LotQuestion, LotRun
from daq_bench.bench_model.lot.sampling import failing_at_most, passing_share_at_least
from daq_bench.bench_model.lot.tolerance import k_factor
from daq_bench.bench_model.nights import history_index
from daq_bench.bench_model.nights.run_history import read_all
from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.lot import told, words
from daq_bench.bench_report.lot.analysis import Asked, lot
from daq_bench.bench_report.lot.choice import bundles_of
from daq_bench.bench_report.lot.document import paper_of
from daq_bench.bench_report.output.paper import to_html

Roots = Callable[..., tuple[Path, ...]]


def of_drive(number: int, *rates: float, changes: dict[str, Any] | None = None, **more: Any) -> Run:
    """A run of one drive alone."""
    own = drive(f"S{number:03d}", **(changes or {}))
    return Run(f"node-{number}", number, rates=rates, drives=[own], **more)


def found_in(roots: tuple[Path, ...], **asked: Any) -> Lot:
    return lot(Asked(roots, **asked))[0]


def rate_in(found: Lot) -> LotQuestion:
    return next(one for one in found.requirements if one.id == RATE)


def text_of(roots: tuple[Path, ...], **asked: Any) -> str:
    found, sources = lot(Asked(roots, **asked))
    html = to_html(paper_of(found, "make lot", sources[-1].moment))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html.replace("\u202f", " ")))


def test_k_of_n_is_put_into_words(runs_of: Roots) -> None:
    roots = runs_of(of_drive(1, 10.0, 10.1), of_drive(2, 10.2, 10.1), of_drive(3, 8.0, 8.1))
    found = found_in(roots, lot_size=10)
    accepted = found.acceptance
    assert (accepted.passed, accepted.tested) == (2, 3)
    assert accepted.failing_at_most >= 1
    assert accepted.plan == AcceptancePlan("B", 3, 4.0)
    text = text_of(roots, lot_size=10)
    assert "2 OF 3 PASS" in text
    assert "Failed: S003" in text
    assert "3 were tested: reject" in text


def test_what_is_to_be_done_stands_first(runs_of: Roots) -> None:
    roots = runs_of(*(of_drive(number, 10.0 + number / 10) for number in range(5)))
    found = found_in(roots, lot_size=50)
    assert found.acceptance.plan.sample == 8
    assert words.meaning(found).startswith("Test 3 more, taken at random: the plan for a lot of 50 asks for 8. 5 of 5")
    badge = paper_of(found, "make lot", START).badge
    assert (badge.word, badge.css, badge.suffix) == (
        "5 OF 5 PASS",
        "tied",
        "test 3 more",
    )  # not green before the plan is done
    failing = [point.failing for point in found.acceptance.plan_curve]
    assert failing == [1, 2, 5, 10]  # 1 % and 2 % of 50 are both one drive
    assert paper_of(found_in(roots, lot_size=5), "make lot", START).badge.css == "pass"
    assert "more, taken at random" not in words.meaning(found_in(roots))  # nobody knows how large the lot is
    assert "more, taken at random" not in words.meaning(found_in(roots, lot_size=5))  # all were tested


def test_more_drives_are_no_remedy_for_one_that_failed(runs_of: Roots) -> None:
    found = found_in(runs_of(of_drive(1, 10.0), of_drive(2, 8.0)), lot_size=50)
    assert "more, taken at random" not in words.meaning(found)


def test_the_tolerance_bound_is_mean_less_k_sd(runs_of: Roots) -> None:
    known = rate_in(found_in(runs_of(*(of_drive(n, 10.0 + n / 10) for n in range(5))))).tolerance
    assert known.factor == pytest.approx(k_factor(5))
    assert known.normal == pytest.approx(10.2 - k_factor(5) * 0.158113883, rel=1e-6)
    assert (known.rank, known.free) == (0, None)
    assert known.covered == pytest.approx(0.05**0.2, rel=1e-6)


def test_the_limiting_drive_is_named_and_told_from_noise(runs_of: Roots) -> None:
    rates = {n: (10.5 + 0.01 * (n % 3), 10.52 + 0.01 * (n % 3)) for n in range(8)}
    rates[5] = (9.6, 9.62)
    roots = runs_of(*(of_drive(n, *own) for n, own in rates.items()))
    known = rate_in(found_in(roots, stripe=4)).limiting
    assert known.drive == "S005"
    assert known.stripe.rate == pytest.approx(4 * 9.61)
    assert known.outlier_p < 0.001 and known.next_p < 0.001
    text = text_of(roots, stripe=4)
    assert "a stripe of 4 with it gives 38.44 GB/s" in text
    assert "It stands out of the drive-to-drive spread" in text


def test_drives_that_differ_by_noise_alone_have_no_limiting_one(runs_of: Roots) -> None:
    roots = runs_of(*(of_drive(n, 10.0 + 0.1 * (n % 2), 10.1 - 0.1 * (n % 2), 10.05) for n in range(6)))
    one = rate_in(found_in(roots))
    assert one.spread.between == 0
    assert "differ by no more than their repetitions do" in "".join(words.stripe_sentence(one))


def test_a_size_has_its_unit_and_its_digits_only_where_the_unit_hides_some(runs_of: Roots) -> None:
    sizes = (256_000_000_000, 256_060_514_304, 0)
    roots = runs_of(*(of_drive(number, 10.0, changes={"size": size}) for number, size in enumerate(sizes)))
    found = next(one for one in found_in(roots).differences if one.what == "capacity")
    assert {one.value for one in found.values} == {"256 GB", "256.1 GB (256060514304 B)", "0 B"}


def test_silent_differences_are_named_with_their_serials(runs_of: Roots) -> None:
    roots = runs_of(
        of_drive(1, 10.0), of_drive(2, 10.0), of_drive(3, 10.0, changes={"firmware": "OPPA4C5Q"}),
        of_drive(4, 10.0, smart={"S004": {"nvme_pci_vendor": {"id": 0x144D, "subsystem_id": 0x1028}}}),
        of_drive(5, 10.0, ocp={"S005": {"xor_recoveries": 0}}), of_drive(6, 10.0, changes={"size": 7_681_501_000_000}),
    )  # fmt: skip
    rare = {one.what: one.values[1].serials for one in found_in(roots).differences}
    assert rare["firmware"] == ["S003"]
    assert rare["PCI subsystem vendor id"] == ["S004"]
    assert rare["fields that its OCP log keeps"] == ["S005"]
    assert rare["capacity"] == ["S006"]
    text = text_of(roots)
    assert "not uniform" in text
    assert "differ in capacity (7.682 TB (7681501126656 B) / 7.682 TB (7681501000000 B)): S006." in text
    assert "Drives of one model differ in firmware (OPPA4B5Q / OPPA4C5Q): S003." in text


@pytest.mark.parametrize("key", ["nvme_pci_vendor", "nvme_version", "nvme_smart_health_information_log"])
@pytest.mark.parametrize("odd", ["text", 7, [{"id": 1}], True])
def test_a_table_of_smart_of_another_type_is_one_clear_error(runs_of: Roots, key: str, odd: object) -> None:
    roots = runs_of(of_drive(1, 10.0), of_drive(2, 10.0, smart={"S002": {key: odd}}))
    with pytest.raises(BundleError, match=rf"facts/smart-before\.json: {key} is .*, and no table"):
        found_in(roots)


def test_a_table_of_smart_that_a_drive_does_not_give_is_no_error(runs_of: Roots) -> None:
    given = {"nvme_pci_vendor": None, "nvme_version": {}, "nvme_smart_health_information_log": None}
    assert found_in(runs_of(of_drive(1, 10.0), of_drive(2, 10.0, smart={"S002": given}))).differences is not None


def test_a_drive_whose_firmware_changed_between_its_runs_is_named(runs_of: Roots) -> None:
    later = Run("node-1", 9, drives=[drive("S001", firmware="OPPA4C5Q")])
    found = found_in(runs_of(of_drive(1, 10.0), later, of_drive(2, 10.0)))
    assert [(one.serial, one.what) for one in found.changed] == [("S001", "firmware")]


@pytest.mark.parametrize("with_firmware", [True, False])
def test_clusters_are_found_and_held_against_what_drives_report(runs_of: Roots, with_firmware: bool) -> None:
    runs = []
    for n in range(16):
        slow = n % 2 == 0
        changes = {"firmware": "OLD"} if slow and with_firmware else {}
        runs.append(of_drive(n, (9.8 if slow else 10.6) + 0.01 * (n % 5), changes=changes))
    found = rate_in(found_in(runs_of(*runs))).clusters
    assert found.there
    assert len(found.low) == 8
    assert found.goes_with == (["firmware"] if with_firmware else [])


def test_an_array_and_a_run_that_does_not_count_give_identity_only(runs_of: Roots) -> None:
    array = Run("array", rates=(40.0,), drives=[drive("S001"), drive("S002")])
    found = found_in(runs_of(array, of_drive(3, 10.0), of_drive(4, 99.0, outcome="INADMISSIBLE")))
    assert {one.serial: one.outcome for one in found.drives} == {
        "S001": "not tested", "S002": "not tested", "S003": "passed", "S004": "not tested",
    }  # fmt: skip
    assert list(rate_in(found).means) == ["S003"]


def test_one_drive_makes_a_document_that_promises_nothing(runs_of: Roots) -> None:
    text = text_of(runs_of(of_drive(1, 10.0)))
    assert "1 OF 1 PASS" in text
    assert "with 95 % confidence at least 5 % of such drives do" in text
    assert "fewer than two have values of the same requirement" in text


def claim_of(roots: tuple[Path, ...], requirement: str = RATE, **asked: Any) -> tuple[str, list[str]]:
    found = found_in(roots, **asked)
    claim = next(one for one in found.requirements if one.id == requirement).claim
    return claim.kind, claim.drives


def test_a_bound_that_a_tested_drive_refutes_is_never_met(runs_of: Roots) -> None:
    roots = runs_of(*(of_drive(n, 12.0 + 0.001 * n) for n in range(12)), of_drive(12, 9.0))
    found = found_in(roots)
    assert rate_in(found).claim == LotClaim("refuted", ["S012"], "tested drives do not meet it")
    text = text_of(roots)
    assert "such drives do not all meet at least 9.243 GB/s at full scale: refuted by S012." in text
    assert "this meets" not in text


def test_one_value_refutes_where_the_mean_meets(runs_of: Roots) -> None:
    roots = runs_of(*(of_drive(n, 12.0) for n in range(3)), of_drive(3, 12.0, 12.0, 9.2, spread=0.001))
    assert claim_of(roots, lot_size=4) == ("refuted", ["S003"])


def test_few_drives_leave_the_bound_open_and_many_or_all_meet_it(runs_of: Roots) -> None:
    roots = runs_of(*(of_drive(n, 12.0 + 0.01 * (n % 7)) for n in range(59)))
    assert claim_of(roots[:58]) == ("open", [])
    assert claim_of(roots) == ("met", [])
    assert claim_of(roots[:3]) == ("open", [])
    assert claim_of(roots[:3], lot_size=3) == ("met", [])
    assert claim_of(roots[:3], lot_size=4) == ("open", [])
    assert "it takes 59 drives, or the whole lot; 3 were tested" in text_of(roots[:3])


def test_a_drive_without_a_value_or_without_a_run_that_counts_leaves_it_open(runs_of: Roots) -> None:
    roots = runs_of(*(of_drive(n, 12.0) for n in range(3)), of_drive(3, 12.0, outcome="INADMISSIBLE"))
    assert claim_of(roots) == ("open", ["S003"])
    results = json.loads((roots[1] / "results" / "demo.json").read_text(encoding="utf-8"))
    (roots[1] / "results" / "demo.json").write_text(json.dumps({**results, "rate": [None]}), encoding="utf-8")
    conclude(roots[1])
    assert claim_of(roots[:3], lot_size=3) == ("open", ["S001"])


def test_drives_whose_runs_do_not_count_are_not_left_out_of_the_sample(runs_of: Roots) -> None:
    """Eight of 50 pass, as the plan asks; two more ran, and their runs do not count."""
    good, odd = [of_drive(n, 12.0) for n in range(8)], [of_drive(n, 12.0, outcome="ERROR") for n in (8, 9)]
    assert "8 were tested: accept." in text_of(runs_of(*good), lot_size=50)
    again = runs_of(*(replace(one, candidate=f"x{one.candidate}") for one in (*good, *odd)))
    accepted = found_in(again, lot_size=50).acceptance
    assert (accepted.passed, accepted.tested, accepted.unresolved) == (8, 8, ["S008", "S009"])
    assert accepted.at_least == pytest.approx(passing_share_at_least(8, 10))
    assert accepted.failing_at_most == failing_at_most(8, 10, 50)
    text = text_of(again, lot_size=50)
    assert "not accepted, for S008, S009 ran and no run of it counts" in text
    assert "tested: accept." not in text


def test_one_drive_in_two_runs_is_one_drive(runs_of: Roots) -> None:
    again = Run("node-9", 9, rates=(12.0,), drives=[drive("S001")])
    roots = runs_of(of_drive(1, 12.0), again, of_drive(2, 12.0))
    run = json.loads((roots[1] / "run.json").read_text(encoding="utf-8"))
    run["target"]["drives"][0]["serial"] = " S001 "
    (roots[1] / "run.json").write_text(json.dumps(run), encoding="utf-8")
    seal(roots[1])
    accepted = found_in(roots).acceptance
    assert (accepted.passed, accepted.tested) == (2, 2)
    failing = Run("node-8", 8, rates=(9.0,), drives=[drive("S001")])
    assert found_in(runs_of(failing, replace(again, candidate="n"))).acceptance.passed == 0


def test_a_serial_of_two_models_is_refused(runs_of: Roots) -> None:
    other = Run("node-9", 9, drives=[drive("S001", model="OTHER")])
    with pytest.raises(BundleError, match=r"drive S001 is a .* here and a .* in run"):
        found_in(runs_of(of_drive(1, 12.0), other))


def test_a_rate_beside_a_drive_without_a_serial_is_nobodys_own(runs_of: Roots) -> None:
    pair = Run("pair", 5, rates=(40.0,), drives=[drive("S005"), {**drive("S006"), "serial": None}])
    outcomes = {one.serial: one.outcome for one in found_in(runs_of(pair, of_drive(1, 12.0))).drives}
    assert outcomes == {"S001": "passed", "S005": "not tested"}


def test_what_is_asked_for_exactly_has_no_tolerance_bound(runs_of: Roots) -> None:
    roots = runs_of(*(of_drive(n, 12.0) for n in range(3)), of_drive(3, 12.0, lost=2))
    assert claim_of(roots, "TND-03") == ("refuted", ["S003"])
    assert claim_of(roots[:3], "TND-03", lot_size=3) == ("met", [])
    text = text_of(roots, requirement="TND-03")
    assert "TND-03: such drives do not all meet exactly 0 at full scale: refuted by S003." in text
    assert "TND-03, upper" not in text and "stay below" not in text


def test_drives_that_were_asked_different_things_make_no_lot(runs_of: Roots) -> None:
    with pytest.raises(BundleError, match=r"TND-01\.bound differs from that of .*: 9.24288 against 9.0"):
        found_in(runs_of(of_drive(1, 12.0), of_drive(2, 12.0, bound=9.0)))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "drives of 2 models: OTHER, SAMSUNG MZWLO7T6HBLA. Choose one with --model"),
        ({"model": "NONE"}, "no run has a drive of model 'NONE'. Known: OTHER"),
        (
            {"model": "OTHER", "requirement": "X-1"},
            "--requirement: 'X-1' is not one of the runs' requirements. Known: TND-01",
        ),
        ({"model": "OTHER", "lot_size": 0}, "--lot-size: 0 is less than the 1 drives of these runs"),
        ({"model": "OTHER", "stripe": 1}, "--stripe: 1 is too few"),
    ],
)
def test_what_makes_no_lot_is_refused(runs_of: Roots, asked: dict[str, Any], message: str) -> None:
    roots = runs_of(of_drive(1, 10.0), of_drive(2, 10.0, changes={"model": "OTHER"}))
    with pytest.raises(BundleError, match=re.escape(message)):
        found_in(roots, **asked)


def test_a_lot_of_which_nothing_counts_is_set_all_the_same(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(*(of_drive(number, 10.0, outcome="INADMISSIBLE") for number in (1, 2)))
    assert main(["lot", *map(str, roots), "-o", str(tmp_path / "out")]) == 0
    assert "NONE TESTED" in (tmp_path / "out" / "lot.html").read_text(encoding="utf-8")


def test_sixty_four_drives_are_set_and_checked(
    runs_of: Roots, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = runs_of(*(of_drive(n, 10 + 0.013 * (n * 37 % 64), 10.02 + 0.013 * (n * 37 % 64)) for n in range(64)))
    out = tmp_path / "out"
    assert main(["lot", *map(str, roots), "--lot-size", "200", "--stripe", "8", "-o", str(out)]) == 0
    text = subprocess.run(
        ["pdftotext", "-layout", str(out / "lot.pdf"), "-"], check=True, capture_output=True, text=True
    ).stdout
    for said in ("64 OF 64 PASS", "code letter G", "S063", "Wilks", "page 1 of"):
        assert said in text
    reader = PdfReader(out / "lot.pdf")
    assert list(reader.attachments) == ["figure-data.csv", "lot-data.json", "lot.json"]
    again = ["lot", *map(str, roots), "--lot-size", "200", "--stripe", "8", "--check", str(out / "lot.json")]
    assert main(again) == 0
    assert main([*again[:-6], "--lot-size", "300", "--check", str(out / "lot.json")]) == 1
    assert "line " in capsys.readouterr().err


def test_a_folder_without_runs_is_no_question_of_a_model(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as caught:
        bundles_of([tmp_path], None)
    said = f"{tmp_path}: it holds no finished run that counts. Name a folder of runs, or bundles: runs/<run-id>"
    assert str(caught.value) == said
    with pytest.raises(BundleError, match=r"has a drive of model 'Nemo'\. There are none"):
        bundles_of([tmp_path], "Nemo")


def test_of_a_folder_those_runs_are_chosen_that_did_the_same_on_the_model(
    runs_of: Roots, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other models, another scenario, an altered run: they are not in the lot, and do not keep it from being made."""
    own = runs_of(*(of_drive(number, 10.0 + number / 10) for number in range(3)))
    runs_of(of_drive(7, 9.0, changes={"model": "Other"}), of_drive(0, 9.0, scenario="old"))
    altered = runs_of(of_drive(9, 9.0))[0]
    (altered / "run.json").write_text((altered / "run.json").read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert bundles_of([tmp_path / "runs"], MODEL) == sorted(own)
    assert bundles_of([own[0], tmp_path / "nowhere"], None) == [own[0], tmp_path / "nowhere"]
    with pytest.raises(BundleError, match="drives of 2 models: Other, SAMSUNG"):
        bundles_of([tmp_path / "runs"], None)
    with pytest.raises(BundleError, match="no finished run that counts has a drive of model 'Nemo'"):
        bundles_of([tmp_path / "runs"], "Nemo")
    assert main(["lot", str(tmp_path / "runs"), "--model", MODEL, "-o", str(tmp_path / "lot")]) == 0
    made = json.loads((tmp_path / "lot" / "lot.json").read_text(encoding="utf-8"))
    assert [drive["serial"] for drive in made["drives"]] == ["S000", "S001", "S002"]


def test_two_runs_with_the_very_same_telemetry_are_one(runs_of: Roots) -> None:
    roots = runs_of(of_drive(1, 10.0), of_drive(2, 10.1), of_drive(3, 10.2))
    for root in roots[1:]:
        (root / "telemetry" / "points.lp").write_text("cpu busy=1 1\n", encoding="utf-8")
        seal(root)
    with pytest.raises(BundleError, match="has the very telemetry of"):
        found_in(roots)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bundles that were read and judged for the lot's index; those of these tests are settled as soon as they are written."""
    monkeypatch.setattr(bundle_state, "SETTLED_NS", -1)
    names: list[str] = []
    real = told.read_source
    monkeypatch.setattr(told, "read_source", lambda root: (names.append(root.name), real(root))[1])
    return names


@pytest.fixture
def indexed(runs_of: Roots, read: list[str]) -> tuple[Path, ...]:
    """Four drives, the last of which fails, that the lot's index knows."""
    roots = runs_of(*(of_drive(n, 12.0 + n / 10) for n in range(3)), of_drive(3, 8.0))
    assert found_in(roots).acceptance.passed == 3
    assert sorted(read) == sorted(root.name for root in roots)
    read.clear()
    return roots


def lot_index(roots: tuple[Path, ...]) -> Path:
    return next((roots[0].parent / history_index.FOLDER).glob("*.lot.parquet"))


def test_what_the_index_knows_is_not_judged_again_and_says_the_same(indexed: tuple[Path, ...], read: list[str]) -> None:
    warm = found_in(indexed)
    assert read == []
    lot_index(indexed).unlink()
    assert found_in(indexed) == warm and len(read) == 4


def test_a_lot_leaves_the_rows_of_other_lots(indexed: tuple[Path, ...], read: list[str]) -> None:
    assert found_in(indexed[:2]).acceptance.tested == 2
    assert found_in(indexed[2:]).acceptance.tested == 2
    read_all(indexed[:2])
    assert found_in(indexed).acceptance.tested == 4
    assert read == []


def test_an_altered_run_is_refused_whatever_its_times_say(indexed: tuple[Path, ...]) -> None:
    file = indexed[1] / "results" / "demo.json"
    times, content = file.stat(), file.read_bytes()
    file.write_bytes(content.replace(b"12100000000", b"99100000000"))
    assert file.read_bytes() != content
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(BundleError, match="was altered since it was sealed"):
        found_in(indexed)


def test_two_runs_that_change_places_keep_their_own_values(indexed: tuple[Path, ...]) -> None:
    before = found_in(indexed)
    *_, passed, failed = indexed
    passed.rename(passed.with_name("aside"))
    failed.rename(passed)
    passed.with_name("aside").rename(failed)
    assert found_in(indexed) == before  # by their serials


def forged(roots: tuple[Path, ...]) -> bytes:
    """Makes every run of the lot's index a PASS; returns the file."""
    from pyarrow import parquet

    file = lot_index(roots)
    table = parquet.read_table(file)
    rows = [{**row, "outcome": "PASS", "told": row["told"].replace("FAIL", "PASS")} for row in table.to_pylist()]
    assert rows != table.to_pylist()
    parquet.write_table(table.from_pylist(rows, table.schema), file)
    return file.read_bytes()


def test_a_forged_index_changes_no_lot(indexed: tuple[Path, ...], read: list[str]) -> None:
    forged(indexed)
    assert found_in(indexed).acceptance.passed == 3
    assert len(read) == 4


def test_nor_does_a_seal_of_another_kind_of_index_or_of_another_key(
    indexed: tuple[Path, ...], read: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content, file = forged(indexed), lot_index(indexed)
    nights = history_index.Index.of(indexed[0].parent)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    theirs = history_index.Index.of(indexed[0].parent, told.LOT)
    monkeypatch.undo()
    monkeypatch.setattr(bundle_state, "SETTLED_NS", -1)
    assert nights is not None and theirs is not None
    for seal_of_theirs in (nights._seal(content), theirs._seal(content)):
        file.write_bytes(content)
        file.with_name(f"{file.name}.seal").write_bytes(seal_of_theirs)
        assert found_in(indexed).acceptance.passed == 3


def test_another_version_of_the_reports_reads_again(
    indexed: tuple[Path, ...], read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_index, "hash_of", lambda *_: b"another")
    assert found_in(indexed).acceptance.passed == 3
    assert len(read) == 4


def test_a_run_that_may_not_be_rested_on_is_not_kept_and_named_each_time(indexed: tuple[Path, ...]) -> None:
    (indexed[2] / "MANIFEST.sha256").unlink()
    for _ in range(2):
        with pytest.raises(BundleError, match="is not sealed"):
            found_in(indexed)


def test_a_lot_of_thousands_is_set_in_bounded_tables(runs_of: Roots) -> None:
    """Every drive and run is in lot.json; the paper names those that did not pass, then as many as somebody reads."""
    from daq_bench.bench_report.lot.document import _drives

    drives = [LotDrive(f"S{n:04d}", "1", [f"r{n}"], "failed" if n == 2999 else "passed", {}) for n in range(3000)]
    runs = [LotRun(f"r{n}", None, "ERROR", "ERROR", "lost", [], counts=False) for n in range(3000)]
    small = found_in(runs_of(of_drive(1, 10.0), of_drive(2, 10.0)))
    table, left_out = _drives(msgspec.structs.replace(small, judged=None, requirements=[], drives=drives, runs=runs))
    assert len(table.rows) == len(left_out.rows) == 120
    assert table.rows[-1][0] == "S2999" and table.marked == {119}
    assert (
        "120 of 3000 drives are shown, the first that did not pass, then others; all are in lot.json" in table.caption
    )
