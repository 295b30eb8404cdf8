"""The first page decides at a glance: plain words, the next step, the true highest backlog, this run only."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.verdict import Finding, Judgement
from daq_bench.bench_model.evidence.admissibility import NOT_ITS_STORAGE
from daq_bench.bench_report.base import units
from daq_bench.bench_report.document.document import lay_out
from daq_bench.bench_report.document.report_data import document_data
from daq_bench.bench_report.document.section import Code
from daq_bench.bench_report.figures.record import record_figures
from daq_bench.bench_report.qualification.first_page import advice, content
from daq_bench.bench_report.qualification.outline import sections
from daq_bench.bench_report.qualification.render import document_of, to_html
from daq_bench.bench_report.qualification.view import demand_cells, load_words, outcome_of
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.tables.requirements import beside_bound, summary_table, this_run
from daq_bench.bench_report.tables.run import tuning_left_alone, tuning_table

Maker = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("unsettled")  # the words are tested here


def scenario_of(bundle: Bundle, **changes: Any) -> Run:
    """The bundle's run with another scenario."""
    return structs.replace(bundle.run, scenario=structs.replace(bundle.run.scenario, **changes))


def on_its_storage(bundle: Bundle) -> Bundle:
    """The same run, had its target been the candidate's own storage: limited by its load alone."""
    limits = [text for text in bundle.run.scaled_down or [] if not text.startswith(NOT_ITS_STORAGE)]
    assert limits and limits != bundle.run.scaled_down
    return replace(bundle, run=structs.replace(bundle.run, scaled_down=limits))


def edited(root: Path, edit: Callable[[dict[str, Any]], None]) -> Bundle:
    """The bundle with its record changed, as another writer would have left it."""
    file = root / "results/snb_record.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    edit(document["repetitions"][0]["minidaq"])
    file.write_text(json.dumps(document), encoding="utf-8")
    return load(root)


def row(bundle: Bundle, **changes: Any) -> Judgement:
    assert bundle.verdict is not None
    values = {name: getattr(bundle.verdict.requirements[0], name) for name in Judgement.__struct_fields__}
    return Judgement(**{**values, **changes})


def with_rows(bundle: Bundle, *rows: Judgement, **changes: Any) -> Bundle:
    assert bundle.verdict is not None
    names = type(bundle.verdict).__struct_fields__
    values = (
        {name: getattr(bundle.verdict, name) for name in names} | {"requirements": list(rows), "findings": []} | changes
    )
    return replace(bundle, verdict=type(bundle.verdict)(**values), again=None)


UNDECIDED: dict[str, Any] = {
    "metric": "block_scan.large_block_throughput", "decision": "undecided", "severity": "mandatory", "measured": 2.4, "n": 9,
    "outcome": "INADMISSIBLE", "reason": "Undecided: too short; a measurement about 12 times as long would decide",
}  # fmt: skip


def test_the_highest_backlog_is_the_high_water_mark_and_marked_where_it_was(bundle_with: Maker) -> None:
    """The samples of 0.1 s may all lie below it."""

    def peak(record: dict[str, Any]) -> None:
        record["backlog"] |= {"high_water_bytes": 669_000_000, "high_water_s": 4.99}

    figure = record_figures(edited(bundle_with(telemetry=False), peak))[0]
    assert "highest 4.99\u202fs after the start (669" in figure.see and "samples" not in figure.see
    mark = next(one for one in figure.data if one.series.startswith("highest"))
    assert (mark.x, mark.y) == ((4.99,), pytest.approx((669.0,)))


@pytest.mark.parametrize("field", ["backlog", "source"])
def test_a_record_that_lacks_what_its_writer_always_leaves_is_refused_by_name(bundle_with: Maker, field: str) -> None:
    with pytest.raises(BenchError, match=rf"repetitions\[0\]\.minidaq: .*missing required field `{field}`"):
        edited(bundle_with(telemetry=False), lambda record: record.pop(field))


def test_the_sources_lateness_is_what_was_measured(bundle_with: Maker) -> None:
    def late(record: dict[str, Any]) -> None:
        offered = record["superchunks"]["offered"]
        record["source"] |= {"late_superchunks": round(0.24 * offered), "worst_lateness_us": 127_000.0}

    bundle = edited(bundle_with(telemetry=False), late)
    caption = record_figures(bundle)[0].caption
    assert "keeps its pace" not in caption and "24\u202f% of the superchunks" in caption and "127\u202fms" in caption
    source = demand_cells(bundle)[-1]
    assert (source.label, source.value, source.binary) == ("Source", "24\u202f% late", "by up to 127\u202fms")


def test_a_few_late_superchunks_of_millions_are_counted_and_none_is_no_lateness(bundle_with: Maker) -> None:
    """1.02 x 10^-5 % is nothing that anybody reads."""

    def late(number: int, worst_us: float) -> Callable[[dict[str, Any]], None]:
        return lambda record: record["source"].update(late_superchunks=number, worst_lateness_us=worst_us)

    bundle = edited(bundle_with(telemetry=False), late(0, 40.0))
    source = demand_cells(bundle)[-1]
    assert (source.value, source.binary) == ("never late", "at most 40.0\u202f\u00b5s after its time")
    few = demand_cells(edited(bundle_with(telemetry=False), late(17, 812.0)))[-1]
    assert (few.value, few.binary) == ("17 late", "of 3\u202f319\u202f336, by up to 812\u202f\u00b5s")
    assert units.share_or_count(17, 166_250_000) == "17 of 166\u202f250\u202f000"
    assert units.share_or_count(16_625, 166_250_000) == "0.01\u202f%" and units.share_or_count(0, 5) == "0\u202f%"


def test_a_miss_that_the_headline_states_is_no_finding_of_the_first_page(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    missed = {"decision": "missed", "outcome": "FAIL", "severity": "mandatory", "measured": 2.0}
    rows = [row(bundle, **missed, id=f"SNB-{number:02d}") for number in range(1, 6)]
    page = content(with_rows(bundle, *rows, outcome="FAIL"))
    assert page["outcome"].meaning.startswith("Missed SNB-01 ") and "(+4 more missed)" in page["outcome"].meaning
    assert [one.of for one in page["remarks"]] == ["SNB-02", "SNB-03"] and "missed (2)" in page["more_findings"]


def test_one_value_is_of_this_run_only(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    table = summary_table(bundle)
    assert table is not None and "this run only (n = 1)" in str(table.rows) and "exact\n" not in str(table.rows)
    assert not any(cell == "exact" for cells in table.rows for cell in cells)
    assert this_run(row(bundle, n=3)) == "this run only (n = 3)"


def test_a_confidence_that_the_caption_has_said_of_all_rows_takes_no_column(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    exact, ranged = row(bundle, n=1, confidence_interval=None), row(bundle, n=1, confidence_interval=[1.0, 2.0])
    table = summary_table(with_rows(bundle, exact, exact))
    assert (
        table is not None
        and "Each value is of this run only (n = 1)." in table.caption
        and "Confidence" not in table.heads
    )
    assert len(table.heads) == len(table.kinds) == 6 and {len(cells) for cells in table.rows} == {6}
    other = summary_table(with_rows(bundle, exact, ranged))
    assert other is not None and "Confidence" in other.heads


def test_a_row_says_what_its_numbers_say_and_the_runs_outcome_stands_once(bundle_with: Maker) -> None:
    html = to_html(load(bundle_with(telemetry=False)))
    assert 'class="status met"' in html and "status inadmissible" not in html
    table = summary_table(load(bundle_with(telemetry=False)))
    assert table is not None and {cells[-1] for cells in table.rows} <= {"met", "missed", "undecided", "not measured"}
    assert "the run's own outcome is REHEARSAL" in table.caption


def test_what_to_do_next_names_the_parameter_that_would_decide(bundle_with: Maker) -> None:
    bundle = on_its_storage(load(bundle_with(telemetry=False)))
    step = advice(
        with_rows(bundle, row(bundle, **UNDECIDED, length_factor=12.0, more_repetitions=3), outcome="INADMISSIBLE")
    ).step
    assert step.code == (
        "workloads.block_scan.confirm.seconds_per_repetition: 240",
        "workloads.block_scan.confirm.repetitions: 9",
    )
    other = {**UNDECIDED, "metric": "block_scan.plateau_throughput"}
    step = advice(with_rows(bundle, row(bundle, **other, length_factor=12.0), outcome="INADMISSIBLE")).step
    assert step.code == ("workloads.block_scan.seconds_per_point: 60",)
    nowhere = replace(
        with_rows(bundle, row(bundle, **UNDECIDED, length_factor=12.0)), run=scenario_of(bundle, parameters={})
    )
    assert advice(nowhere).step.code == () and "about 12 times as long would decide" in advice(nowhere).step.text


@pytest.mark.parametrize(
    ("changes", "outcome", "words"),
    [
        ({"decision": "missed", "outcome": "FAIL"}, "FAIL", "It fails as far as a rehearsal can"),
        ({"decision": "met", "outcome": "PASS"}, "PASS", "full load"),
        ({"measured": None, "decision": None, "outcome": "INADMISSIBLE", "n": 0}, "INADMISSIBLE", "measurable"),
        ({}, "ERROR", "Mend the bench"),
    ],
)
def test_there_is_a_next_step_for_each_outcome(
    bundle_with: Maker, changes: dict[str, Any], outcome: str, words: str
) -> None:
    bundle = on_its_storage(load(bundle_with(telemetry=False)))
    found = with_rows(bundle, row(bundle, severity="mandatory", **changes), outcome=outcome)
    assert words in advice(found).step.text


def test_a_first_run_on_a_scratch_file_leads_to_a_server_and_a_simulated_one_to_nothing(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    for changes in (UNDECIDED, {"decision": "met", "outcome": "PASS"}):
        step = advice(with_rows(bundle, row(bundle, **changes), outcome="INADMISSIBLE")).step
        assert step.text.startswith("The bench works here") and step.code == ("daq-bench discover --host USER@SERVER",)
    assert "a model made up" in advice(replace(bundle, run=structs.replace(bundle.run, simulated=True))).step.text


def test_a_full_pass_leaves_nothing_open_and_an_interrupted_run_is_repeated(bundle_with: Maker) -> None:
    found = load(bundle_with(telemetry=False, outcome="PASS", scale=1.0, scaled_down=False))
    rows = row(found, decision="met", outcome="PASS", severity="mandatory")
    whole = with_rows(found, rows, outcome="PASS", declared_rehearsal=False)
    assert advice(whole).step.text.startswith("Nothing is open")
    assert "No conclusion about buying" not in outcome_of(whole).meaning
    torn = advice(load(bundle_with(interrupted=True))).step
    assert "Repeat the run" in torn.text and torn.code[0].startswith("daq-bench qualify")


def test_a_rehearsal_is_called_one_with_its_load(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    found = outcome_of(bundle)
    assert (found.word, found.reasons) == ("REHEARSAL", ("It was declared a rehearsal beforehand, at 1/10 load.",))
    assert found.meaning == "5 of 6 mandatory requirements met, 1 not measured; it decides nothing about buying."
    assert load_words(replace(bundle, run=scenario_of(bundle, scale=0.35))) == "at 0.35 of the load"
    assert content(bundle)["next"].text


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{}, {}, {"decision": None, "measured": None}], "2 of 3 mandatory requirements met, 1 not measured"),
        ([{}, {"decision": "undecided"}, {"severity": "advisory", "decision": None, "measured": None}],
         "1 of 2 mandatory requirements met, 1 undecided"),
        ([{}], "Passed as far as a rehearsal can: 1 of 1 mandatory requirement met"),
    ],
)  # fmt: skip
def test_a_rehearsal_says_how_much_it_measured_and_never_that_nothing_was_missed(
    bundle_with: Maker, rows: list[dict[str, Any]], words: str
) -> None:
    bundle = load(bundle_with(telemetry=False))
    good = {"decision": "met", "severity": "mandatory", "outcome": "PASS"}
    found = with_rows(bundle, *(row(bundle, **{**good, **one}) for one in rows), declared_rehearsal=True)
    assert outcome_of(found).meaning == f"{words}; it decides nothing about buying."
    assert "missed" not in f"{outcome_of(found)}"


def test_altered_evidence_gets_no_mild_word(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    found = outcome_of(replace(bundle, provenance=replace(bundle.provenance, altered=1)))
    assert (found.word, found.css, found.reasons) == ("INADMISSIBLE", "error", ())
    assert found.meaning.startswith("Its files were altered")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"comparison": "at_least", "unit": "GB/s", "measured": 2.444, "scaled_bound": 0.9243},
            "2.444 GB/s, 2.6 \u00d7 the 0.9243 GB/s asked",
        ),
        (
            {"comparison": "at_least", "unit": "GB/s", "measured": 0.9999, "scaled_bound": 1.0},
            "0.9999 GB/s, 0.9999 \u00d7 the 1 GB/s asked",
        ),
        (
            {"comparison": "at_most", "unit": "GB", "measured": 0.0395, "scaled_bound": 1.073741824},
            "39.50 MB of at most 1074 MB",
        ),
        (  # the same digits as in the table of requirements
            {"comparison": "at_most", "unit": "GB", "measured": 198.9, "scaled_bound": 8.589934592},
            "198.9 GB of at most 8.59 GB",
        ),
        (
            {"comparison": "at_most", "unit": "ms", "measured": 261.8, "scaled_bound": 1000},
            "261.8 ms of at most 1000 ms",
        ),
        (
            {"comparison": "at_least", "unit": "K", "measured": 31, "scaled_bound": 1},
            "measured 31 K, asked at least 1 K",
        ),
    ],
)
def test_a_value_stands_beside_its_bound_in_plain_words(
    bundle_with: Maker, changes: dict[str, Any], words: str
) -> None:
    bundle = load(bundle_with(telemetry=False))
    assert beside_bound(row(bundle, **changes)).replace("\u202f", " ") == words


def test_settings_that_nobody_asked_for_stand_in_one_line(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    assert bundle.tuning is not None
    kept = structs.replace(
        bundle.tuning[0],
        id="bios-turbo",
        subject=None,
        asked="keep",
        before="on",
        applied="",
        read_back="on",
        status="unchanged",
    )
    moved = structs.replace(kept, id="moved")
    later = (*(bundle.tuning_after or ()), kept, structs.replace(moved, read_back="off"))
    found = replace(bundle, tuning=(*bundle.tuning, kept, moved), tuning_after=later)
    line, table = tuning_left_alone(found), tuning_table(found)
    assert line is not None and "bios-turbo" in line and "moved" not in line
    assert table is not None and table.rows[0][1:3] == ("\u2265\u202f1\u202f048\u202f576", "65\u202f536")
    assert any(cells[0] == "moved" and "changed" in cells[-1] for cells in table.rows)
    assert not any(cells[0] == "bios-turbo" for cells in table.rows)


def test_unrounded_figures_are_in_the_data_alone(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    document = document_of(bundle)
    data = document_data(document, lay_out(document), content(bundle), {})
    raw = next(one for one in data["sections"] if one["name"] == "raw")
    assert any(part["content"]["name"] == "requirements-raw" for part in raw["parts"])
    html = to_html(bundle)
    assert "Unrounded figures" not in html and "<h3>Tables</h3>" not in html


@pytest.mark.parametrize("outcome", ["FAIL", "ERROR", "INADMISSIBLE"])
def test_a_target_that_failed_is_the_first_thing_that_is_read(bundle_with: Maker, outcome: str) -> None:
    """Where it decides: a run that broke afterwards is the bench's, and another machine's drive is nobody's."""
    root = bundle_with(telemetry=False)
    said = "fio: io_u error on file /t/scan.bin: Input/output error: write offset=0, buflen=65536"
    failure = {
        "workload": "block_scan",
        "during": "fio at block size 1 MiB",
        "tool": "fio",
        "errno": "EIO",
        "raw_drive": False,
        "said": said,
    }
    (root / "results" / "target_failure.json").write_text(
        json.dumps({"schema_version": 1, **failure}), encoding="utf-8"
    )
    bundle = load(root)
    reason = f"The target failed in block_scan, fio at block size 1 MiB: {said}. It lies on nvme0n1 (Drive, serial S1)"
    found = with_rows(
        bundle,
        row(bundle, decision=None, measured=None, margin=None, margin_percent=None, reason="Not measured: nothing"),
        outcome=outcome,
        reasons=[reason, "Firmware: drive S1 tells none"],
    )
    page = content(found)
    first = (page["remarks"][0].kind, page["outcome"].reasons, "its storage failed" in page["next"].text)
    decides = ("Target failed", ("The candidate's storage failed while the bench loaded it.",), True)
    assert (first == decides) is (outcome == "FAIL")
    if outcome == "FAIL":
        assert page["remarks"][0].text == f"{reason}."


def test_a_drive_that_its_purge_left_with_data_is_named_before_what_was_not_measured(bundle_with: Maker) -> None:
    root = bundle_with(telemetry=False)
    told = {"workload": "saturation", "label": "saturation-1", "serial": "S1", "method": "discard", "zero_share": 0.25}
    file = root / "results" / "purge_failure.json"
    file.write_text(json.dumps({"schema_version": 1, **told}), encoding="utf-8")
    bundle = load(root)
    open_ = row(bundle, decision=None, measured=None, margin=None, margin_percent=None, reason="Not measured: nothing")
    page = content(with_rows(bundle, open_, outcome="INADMISSIBLE", findings=[]))
    first = page["remarks"][0]
    assert (first.kind, "drive S1" in first.text) == ("Drive not emptied", True)
    assert first.text.endswith("(NVMe Format with erasure), or choose a drive that reads zeros after a discard.")


def test_a_failure_that_no_bound_states_is_named_before_what_was_not_measured(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    open_ = row(bundle, decision=None, measured=None, margin=None, margin_percent=None, reason="Not measured: nothing")
    failing = Finding(
        "The read-back of record 1 says that the data are damaged", False, ("results/snb_record.json",), True
    )
    found = with_rows(bundle, open_, outcome="FAIL", findings=[failing])
    assert content(found)["remarks"][0].kind == "Candidate failed"
    assert "fails as far as a rehearsal can" in advice(found).step.text
    assert "Candidate failed" not in [
        one.kind for one in content(with_rows(bundle, open_, outcome="ERROR", findings=[failing]))["remarks"]
    ]


def test_the_report_prints_the_command_that_runs_a_measurement_of_fio_by_hand(bundle_with: Maker) -> None:
    root = bundle_with()
    none = sections(load(root))
    assert "measurement of fio" not in str(none)
    raw = root / "results" / "raw"
    raw.mkdir(exist_ok=True)
    for name in ("fio-65536", "fio-4096", "fio-8388608-repetition-1", "fio-8388608-repetition-2", "layout-$(id)"):
        (raw / f"{name}.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    bundle = load(root)
    (part,) = (
        one
        for section in sections(bundle)
        if section.name == "reproduce"
        for one in section.parts
        if isinstance(one, Code) and "measurement of fio" in one.lead
    )
    here = f"runs/{bundle.run.run_id}/results/raw"
    assert part.lines == (
        f"sh {here}/fio-4096.sh",
        f"sh {here}/fio-8388608-repetition-1.sh",
        f"sh '{here}/layout-$(id).sh'",
    )
    assert "one of each kind; 5 measurements" in part.lead
