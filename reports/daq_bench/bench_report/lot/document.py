"""lot.json as a paper: K of N first, then the single drives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from daq_bench.bench_model.documents.lot import Lot, LotQuestion
from daq_bench.bench_report.base.units import NONE, SPELLED, THIN, count, percent, quantity, significant
from daq_bench.bench_report.comparison.tables import ROWS_MAX, made_of, near, p_text
from daq_bench.bench_report.document.beside import boxes_of
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.made_by import seal_of_runs
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.lot import words
from daq_bench.bench_report.lot.figures import DriveRow, Line, lot_figure
from daq_bench.bench_report.output.paper import Badge, Paper

SERIALS_MAX, CHANGES_MAX = 12, 20
DRIVES_DRAWN_MAX = 120  # half of them the lowest, half the highest
NOT_RECORDED = (
    "No bundle of this bench records the drive's FRU or OCP hardware revision, NAND die and controller stepping."
)


def paper_of(found: Lot, command: str, moment: datetime) -> Paper:
    number = len(found.drives)
    return Paper(
        kicker="Lot report",
        title=found.model,
        meta=(
            f"{number} drive{'s' if number != 1 else ''} in {len(found.runs)} run{'s' if len(found.runs) != 1 else ''}: "
            f"{found.scenario.title or found.scenario.id}",
            f"Requirements: {found.requirement.title or found.requirement.id}; newest run of {moment:%Y-%m-%d %H:%M} UTC",
        ),
        running=f"{found.scenario.id}: {number} drives of {found.model}",
        badge=_badge(found),
        meaning=words.meaning(found),
        reasons=tuple(words.reasons(found)),
        boxes=boxes_of((run.run_id, ", ".join(run.marks)) for run in found.runs),
        summary=_summary(found),
        notes=(
            "Bound for the lot: beyond it lie 95\u202f% of such drives at 95\u202f% confidence, if their values are normally distributed. "
            "It stands whether or not the requirement is met. By the lot: met only where so many drives show it, refuted by one.",
        ),
        sections=(
            Section("acceptance", "What K of N says about the lot", tuple(_acceptance(found))),
            Section("tolerance", "Tolerance bounds", tuple(_tolerance(found))),
            Section("stripe", "The drive that limits a stripe", tuple(_stripe(found))),
            Section("uniform", "Differences within the lot", tuple(_differences(found))),
            Section("drives", "Drives and runs", tuple(_drives(found))),
            Section("method", "How this was computed", tuple(_method(found, command))),
        ),
        keywords=("lot", found.model, found.scenario.id),
        moment=moment,
        seal=seal_of_runs(run.manifest_sha256 for run in found.runs),
    )


def _badge(found: Lot) -> Badge:
    accepted, odd = found.acceptance, words.oddities(found)
    suffix = f"not uniform: {odd} finding{'s' if odd != 1 else ''}" if odd else ""
    if accepted is None:
        return Badge("NONE TESTED", "?", "no-verdict", suffix)
    word = f"{accepted.passed} OF {accepted.tested} PASS"
    if accepted.passed < accepted.tested:
        return Badge(word, "\u2718", "fail", suffix)
    if more := words.to_test(accepted, found.lot_size):
        return Badge(word, "\u2192", "tied", "; ".join(one for one in (f"test {more} more", suffix) if one))
    return Badge(word, "\u2248" if odd else "\u2714", "tied" if odd else "pass", suffix)


def _summary(found: Lot) -> Table:
    rows = []
    for one in found.requirements:
        known, bound, exact = one.tolerance, one.bound, one.comparison == "equal"
        stated = "as declared" if isinstance(bound, str) else quantity(bound, one.unit, trim=True)
        means = list(one.means.values())
        limit = NONE if known.normal is None or exact else quantity(known.normal, one.unit)
        if limit != NONE and not known.normal_to_be_relied_on and known.sd:
            limit += " (not normal)"
        rows.append((
            f"{one.id} {one.text}", stated, quantity(known.mean, one.unit),
            f"{quantity(min(means), one.unit)} to {quantity(max(means), one.unit)}", limit, one.claim.kind, count(known.n),
        ))  # fmt: skip
    return Table(
        ("Requirement", "Asked", "Mean", "Drives from, to", "Bound for the lot", "By the lot", "Drives"),
        "tnnnntn",
        tuple(rows),
        "Requirements over all drives.",
        "lot-summary",
    )


def _acceptance(found: Lot) -> Iterator[Part]:
    one = found.acceptance
    if one is None:
        yield Lacking("acceptance: no drive has a run of its own that counts as evidence (PASS or FAIL)")
        return
    low, high = one.interval
    yield (
        f"{one.passed} of {one.tested} tested drives pass every mandatory requirement in each of their runs. If they were taken at "
        f"random, between {percent(100 * low)} and {percent(100 * high)} of all such drives would (95{THIN}%, Clopper and Pearson), and at "
        f"least {percent(100 * one.at_least)} (95{THIN}%, one-sided)."
    )
    if found.lot_size is None:
        yield Lacking("what it says about this very lot: its size was not given (--lot-size)")
        return
    if one.tested == found.lot_size:
        yield f"All {found.lot_size} drives of the lot were tested: nothing about it is left to chance."
        return
    yield (
        f"At most {one.failing_at_most} of the {found.lot_size} drives of this lot fail (95{THIN}%, hypergeometric), the tested ones "
        "included."
    )
    plan = one.plan
    if plan is None:
        yield Lacking(
            f"an acceptance plan: ISO 2859-1 as built in here reaches to 10 000 drives, the lot has {found.lot_size}"
        )
        return
    enough = one.tested >= plan.sample
    decided = "accept" if one.passed == one.tested else "reject"
    if decided == "accept" and one.unresolved:
        decided = f"not accepted, for {', '.join(one.unresolved[:SERIALS_MAX])} ran and no run of it counts"
    yield (
        f"After ISO 2859-1 (single sampling, normal inspection, general level II) a lot of this size has code letter {plan.letter}: "
        f"test {plan.sample} drives taken at random and accept the lot when none fails (acceptable quality limit "
        f"{plan.aql_percent:g}{THIN}%). "
        + (
            f"{one.tested} were tested: {decided}."
            if enough
            else f"Only {one.tested} were tested: too few for this plan."
        )
    )
    rows = tuple(
        (count(point.failing), percent(100 * point.failing / found.lot_size), percent(100 * point.accepted))
        for point in one.plan_curve
    )
    yield Table(
        ("Failing drives in the lot", "Share", "Accepted by this plan"), "nnn", rows,
        "The plan's risk: the chance that a lot with so many failing drives is accepted.", "plan",
    )  # fmt: skip


def _tolerance(found: Lot) -> Iterator[Part]:
    if not found.requirements:
        yield Lacking("tolerance bounds: no drive has a value of its own")
        return
    yield (
        f"Normal: mean less (or plus) k standard deviations of the drives' means. Distribution-free: the value of a drive itself, which "
        f"needs {found.wilks.first} drives for the extreme one and {found.wilks.second} for the second (Wilks); with fewer, "
        f"the table says which share the extreme value covers at 95{THIN}% confidence."
    )
    rows = []
    for one in found.requirements:
        if one.comparison == "equal":
            continue  # an exact bound has no side
        known = one.tolerance
        side = "lower" if one.comparison == "at_least" else "upper"
        free = (
            f"{quantity(known.free, one.unit)} (value {known.rank} from the end)"
            if known.free is not None
            else f"n too small: extreme covers {percent(100 * known.covered)}"
        )
        rows.append((
            f"{one.id}, {side}", count(known.n), NONE if known.sd is None else quantity(known.sd, one.unit, 3),
            NONE if known.factor is None else significant(known.factor, 4),
            NONE if known.normal is None else quantity(known.normal, one.unit), p_text(known.normality_p), free,
        ))  # fmt: skip
    yield Table(
        ("Requirement", "Drives", "sd", "k", "Normal bound", "Normal? p", "Distribution-free"), "tnnnnnt", tuple(rows),
        "Tolerance bounds. "
        "k: one-sided factor from the noncentral t (ISO 16269-6). Normal? Shapiro and Wilk; below 0.05 the normal bound is "
        "not to be relied on.",
        "tolerance",
    )  # fmt: skip
    judged = found.requirement_judged
    if judged is not None:
        yield _figure(found, judged)


def _figure(found: Lot, one: LotQuestion) -> Figure:
    drives = {drive.serial: drive for drive in found.drives}
    order = sorted(one.means, key=lambda serial: (one.means[serial], serial))
    number = sum(len(drives[serial].values[one.id]) for serial in order)
    caption = f"{len(order)} drives, {number} values, by rising mean. "
    if len(order) > DRIVES_DRAWN_MAX:
        order = [*order[: DRIVES_DRAWN_MAX // 2], *order[-DRIVES_DRAWN_MAX // 2 :]]
        caption += f"Drawn are the {DRIVES_DRAWN_MAX // 2} lowest and the {DRIVES_DRAWN_MAX // 2} highest; all others lie between them. "
    rows = [
        DriveRow(serial, tuple(drives[serial].values[one.id]), one.means[serial], drives[serial].firmware)
        for serial in order
    ]
    lines = []
    if not isinstance(one.bound, str) and near(one.bound, one.means.values()):
        lines.append(Line(one.bound, f"asked at full scale: {quantity(one.bound, one.unit, trim=True)}", "--"))
    if one.tolerance.normal is not None and one.comparison != "equal":
        lines.append(Line(one.tolerance.normal, "normal tolerance bound, 95 % / 95 %", ":"))
    caption += (
        "One shape for each firmware. "
        "A drive that lies apart from a steady slope, or a step in it, is what the next sections look for."
    )
    if not isinstance(one.bound, str) and not near(one.bound, one.means.values()):
        caption += f" The demand, {quantity(one.bound, one.unit, trim=True)} at full scale, lies off the axis."
    return lot_figure(
        "lot",
        f"{one.id}: {one.text}",
        caption,
        rows,
        lines,
        f"{one.id} ({SPELLED.get(one.unit, one.unit)})",
    )


def _stripe(found: Lot) -> Iterator[Part]:
    rows = []
    for one in found.requirements:
        known, own = one.limiting, one.spread
        if known is None:
            continue
        rows.append((
            one.id, known.drive, quantity(known.value, one.unit), percent(100 * known.behind_mean),
            p_text(known.outlier_p), p_text(known.next_p),
            NONE if own.between is None else quantity(own.between, one.unit, 3),
            NONE if own.within is None else quantity(own.within, one.unit, 3), p_text(own.p),
        ))  # fmt: skip
    if not rows:
        yield Lacking("a comparison of drives: fewer than two have values of the same requirement")
        return
    judged = found.requirement_judged
    if judged is not None:
        yield from words.stripe_sentence(judged)
    yield Table(
        ("Requirement", "Worst drive", "Its mean", "Behind the mean", "Outlier p", "Next one p", "sd between", "sd within", "Differ p"),
        "ttnnnnnnn", tuple(rows),
        "The worst drive in each requirement. "
        "Outlier: Grubbs' one-sided test against the spread between drives. Next one: against the scatter of repetitions. sd: random "
        "effects by analysis of variance, between drives and within a drive; Differ: F test of no difference between drives. "
        "\u2013: no repetitions.",
        "stripe",
    )  # fmt: skip


def _differences(found: Lot) -> Iterator[Part]:
    if found.differences:
        rows: list[tuple[str, ...]] = []
        marked = []
        for one in found.differences:
            for index, value in enumerate(one.values):
                if index:
                    marked.append(len(rows))
                rows.append(
                    (
                        one.what if not index else "",
                        _short(value.value),
                        _serials(value.serials, common=not index),
                    )
                )
        yield Table(
            ("What they report", "Value", "Serials"), "ttt", tuple(rows),
            "All that the drives report differently though they are one model; the rarer values are marked.", "identity", frozenset(marked),
        )  # fmt: skip
    else:
        yield "Every drive reports the same firmware, capacity, sector format, PCI identity and logs, as far as the bundles record them."
    if len(found.changed) > CHANGES_MAX:
        yield f"{len(found.changed)} readings changed from run to run. The first {CHANGES_MAX} are named here, all in lot.json."
    for change in found.changed[:CHANGES_MAX]:
        values = ", then ".join(_short(value.value) for value in change.values)
        yield f"{change.serial} changed from run to run: {change.what} {values}."
    yield from words.cluster_sentences(found)
    if not any(one.clusters for one in found.requirements):
        yield Lacking("a search for clusters: it takes six drives or more whose values differ")
    yield NOT_RECORDED


def _short(value: str) -> str:
    return value if len(value) <= 90 else f"{value[:87]}\u2026"


def _serials(serials: list[str], common: bool) -> str:
    if common and len(serials) > SERIALS_MAX:
        return f"{len(serials)} drives, all others"
    shown = ", ".join(serials[:SERIALS_MAX])
    return shown if len(serials) <= SERIALS_MAX else f"{len(serials)} drives: {shown}, \u2026 (all in lot.json)"


def _drives(found: Lot) -> Iterator[Part]:
    judged = found.requirement_judged
    rows: list[tuple[str, ...]] = []
    marked: set[int] = set()
    for one in found.drives:
        if one.outcome != "passed":
            marked.add(len(rows))
        mean = judged.means.get(one.serial) if judged else None
        rows.append((
            one.serial, one.firmware, one.outcome, NONE if mean is None or judged is None else quantity(mean, judged.unit),
            count(len(one.values.get(found.judged or "", []))), count(len(one.runs)),
        ))  # fmt: skip
    shown = sorted(sorted(range(len(rows)), key=lambda at: at not in marked)[:ROWS_MAX])
    yield Table(
        ("Serial", "Firmware", "Outcome", f"Mean of {found.judged or 'values'}", "Values", "Runs"), "tttnnn",
        tuple(rows[at] for at in shown),
        "Drives of the lot. "
        "Not tested: in no run of its own that counts; what an array measured is no drive's own." + _first_of(rows, "drives", marked),
        "lot-drives", frozenset(place for place, at in enumerate(shown) if at in marked),
    )  # fmt: skip
    left_out = [run for run in found.runs if not run.counts]
    if left_out:
        told = tuple((run.run_id, run.word, run.reason or "") for run in left_out[:ROWS_MAX])
        yield Table(
            ("Run that does not count", "Outcome", "Reason"), "ttt", told, f"Runs that do not count.{_first_of(left_out, 'runs')}",
            "left-out",
        )  # fmt: skip


def _first_of(rows: Sequence[object], what: str, marked: Collection[int] = ()) -> str:
    """Says of a long table what it shows: thousands of rows would make a paper that nobody reads, and that takes minutes to set."""
    if len(rows) <= ROWS_MAX:
        return ""
    chosen = " that did not pass, then others" if marked else ""
    return f" {ROWS_MAX} of {len(rows)} {what} are shown, the first{chosen}; all are in lot.json."


def _method(found: Lot, command: str) -> Iterator[Part]:
    yield (
        "A drive passes when every run of its own that counts is a PASS, and fails when one is a FAIL; it counts once, by the mean "
        "of its values. Normal tolerance factors: noncentral t. Numbers of failing drives: hypergeometric. Clusters: the split in two "
        "groups of two drives or more that explains most of the variance, against 4000 seeded simulations of one normal lot, said below "
        "p = 0.01; whether a reported difference goes with them: Fisher's exact test. Sources and checks: docs/lot.md."
    )
    yield made_of([(str(number), run) for number, run in enumerate(found.runs[:ROWS_MAX], 1)])
    if len(found.runs) > ROWS_MAX:
        yield (
            f"The first {ROWS_MAX} of {len(found.runs)} runs stand there. All are in lot.json with their manifests' hashes, and "
            "the seal on each page is one hash over all of them."
        )
    yield "To make it again from the same bundles: " + command + "."
