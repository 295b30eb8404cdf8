"""A night's entries as JUnit XML, in the form that Jenkins' xUnit plugin (junit-10.xsd) and GitLab read.

One suite per run, one test case per requirement. FAIL is a failure, and so is a regression; INADMISSIBLE and ERROR are errors. Where the
run's exit status does not count it (a declared rehearsal, an advisory requirement), it is skipped with its reason: never a silent pass."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.nights import Comparison
from daq_bench.bench_model.documents.verdict import FAIL, PASS, Judgement
from daq_bench.bench_model.nights.baseline import REGRESSED
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.outcome import INTERRUPTED, SKIPPED, Entry
from daq_bench.bench_model.verdict.sentences import SIGNS

# XML 1.0 allows no other control characters: an error message of a tool may hold any.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xunit(entries: Sequence[Entry], name: str) -> str:
    """The whole document, as text that ends with a newline."""
    root = ElementTree.Element("testsuites", name=name)
    for entry in entries:
        root.append(_suite(entry))
    seconds = sum(entry.seconds for entry in entries)
    for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        root.set(key, str(sum(1 for _ in root.iter(tag))))
    root.set("time", f"{seconds:.3f}")
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(entry: Entry) -> ElementTree.Element:
    night = entry.night
    name = ".".join(filter(None, (entry.job.candidate, night.target if night else entry.job.target, _scenario(entry))))
    suite = ElementTree.Element("testsuite", name=_clean(name))
    _properties(suite, entry)
    cases = [_case(row, entry, name) for row in night.rows] if night else []
    if not cases or _broke(entry):
        cases.append(_run_case(entry, name))
    suite.extend(cases)
    for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(sum(1 for _ in suite.iter(tag))))
    suite.set("time", f"{entry.seconds:.3f}")
    if night:
        suite.set("timestamp", night.started.strftime("%Y-%m-%dT%H:%M:%S"))
        suite.set("hostname", _clean(night.facts.get(("machine", "hostname"), entry.job.candidate)))
    return suite


def _scenario(entry: Entry) -> str:
    return entry.night.scenario if entry.night else entry.job.scenario or "its scenario"


def _broke(entry: Entry) -> bool:
    """The run itself did not come to its end, whatever its requirements say."""
    return entry.outcome in (INTERRUPTED, "ERROR")


def _properties(suite: ElementTree.Element, entry: Entry) -> None:
    known = {"outcome": entry.worst, "baseline": entry.baseline or "none"}
    if entry.night:
        known |= {"run": entry.night.id, "verdict": entry.night.outcome}
        known |= {
            f"{group} {name}": value for (group, name), value in sorted(entry.night.facts.items()) if group != "tuning"
        }
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in known.items():
        ElementTree.SubElement(properties, "property", name=_clean(name), value=_clean(value))


def _run_case(entry: Entry, classname: str) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", name="the run itself", classname=_clean(classname), time=f"{entry.seconds:.3f}"
    )
    kind = "skipped" if entry.outcome == SKIPPED else "error"
    _finding(case, kind, entry.outcome, entry.reason)
    return case


def _case(row: Judgement, entry: Entry, classname: str) -> ElementTree.Element:
    name = f"{row.id} {row.text}"
    case = ElementTree.Element("testcase", name=_clean(name), classname=_clean(classname), time="0")
    against = next((one for one in entry.comparisons if one.id == row.id), None)
    found = _judged(row, entry.night, against)
    if found:
        _finding(case, *found)
    ElementTree.SubElement(case, "system-out").text = _clean(_measured(row, against))
    return case


def _judged(row: Judgement, night: Night | None, against: Comparison | None) -> tuple[str, str, str] | None:
    """(kind, type, message); None for a requirement that passed."""
    advisory = row.severity != "mandatory"
    if row.outcome == FAIL and not advisory:
        return "failure", FAIL, row.reason
    if against and against.result == REGRESSED and not advisory:
        return "failure", "REGRESSION", f"worse than the baseline: {_difference(row, against)}"
    if row.outcome == PASS:
        return None
    if advisory:
        return "skipped", row.outcome, f"advisory, it does not count: {row.reason}"
    if night and night.rehearsal:
        return "skipped", row.outcome, f"rehearsal, it does not count: {row.reason}"
    return "error", row.outcome, row.reason


def _finding(case: ElementTree.Element, kind: str, type_: str, message: str) -> None:
    ElementTree.SubElement(case, kind, type=_clean(type_), message=_clean(message))


def _measured(row: Judgement, against: Comparison | None) -> str:
    value = "not measured" if row.measured is None else f"{in_digits(row.measured, 6)} {row.unit}"
    level = f"{100 * row.confidence:.4g} % interval" if row.confidence else "range or interval without a level"
    interval = (
        f", {level} {in_digits(row.confidence_interval[0], 6)} to {in_digits(row.confidence_interval[1], 6)} ({row.interval_method})"
        if row.confidence_interval
        else ""
    )
    bound = f"{SIGNS[row.comparison]} {in_digits(row.scaled_bound, 6)} {row.unit}"
    text = f"{row.metric} ({row.statistic} of n = {row.n}): {value}{interval}; bound {bound}"
    return text if against is None else f"{text}\nagainst the baseline: {against.result} ({against.method})"


def _difference(row: Judgement, one: Comparison) -> str:
    text = f"{in_digits(one.baseline, 6)} then, {in_digits(one.measured, 6)} {row.unit} now"
    return (
        f"{text}, difference {in_digits(one.interval[0])} to {in_digits(one.interval[1])} ({one.method})"
        if one.interval
        else text
    )


def _clean(text: str) -> str:
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
