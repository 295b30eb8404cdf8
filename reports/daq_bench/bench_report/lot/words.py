"""The sentences of a lot report; each follows from lot.json alone."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.lot import Acceptance, Lot, LotQuestion
from daq_bench.bench_report.base.units import SIDES, THIN, percent, quantity

SURE = 0.05
CHANGES_MAX = 6


def oddities(found: Lot) -> int:
    """Counts the things that set drives of this lot apart: reported differences, changes from run to run, clusters."""
    clusters = sum(bool(one.clusters and one.clusters.there) for one in found.requirements)
    return len(found.differences) + len(found.changed) + clusters


def meaning(found: Lot) -> str:
    one = found.acceptance
    if one is None:
        return "No drive was tested in a run of its own that counts: nothing can be said about the lot."
    share = percent(100 * one.at_least)
    text = to_do(one, found.lot_size)
    text += f"{one.passed} of {one.tested} tested drives pass: with 95{THIN}% confidence at least {share} of such drives do."
    if found.lot_size is not None and one.tested < found.lot_size:
        text += f" At most {one.failing_at_most} of the {found.lot_size} drives of this lot fail."
    return text


def to_test(accepted: Acceptance, lot_size: int | None) -> int:
    """How many more drives the plan asks for; 0 where nothing more can be asked of a sample."""
    plan = accepted.plan
    if lot_size is None or plan is None or accepted.passed < accepted.tested or accepted.unresolved:
        return 0
    return max(0, int(min(plan.sample, lot_size)) - int(accepted.tested))


def to_do(accepted: Acceptance, lot_size: int | None) -> str:
    """Says what is to be done about the lot, before what was found."""
    if not (more := to_test(accepted, lot_size)):
        return ""
    return f"Test {more} more, taken at random: the plan for a lot of {lot_size} asks for {accepted.tested + more}. "


def reasons(found: Lot) -> list[str]:
    return [*_failed(found), *_bounds(found), *_slowest(found), *_differences(found), *_untested(found)]


def _failed(found: Lot) -> Iterator[str]:
    failed = [drive.serial for drive in found.drives if drive.outcome == "failed"]
    if failed:
        yield f"Failed: {_some(failed)}."


def _some(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _bounds(found: Lot) -> Iterator[str]:
    one = found.requirement_judged
    if one is None:
        return
    known = one.tolerance
    yield claim_sentence(one)
    if known.normal is None or one.comparison == "equal":
        return
    lower = one.comparison == "at_least"
    doubt = (
        ""
        if known.normal_to_be_relied_on
        else "; not to be relied on, for the values do not look normal or are too few"
    )
    yield (
        f"{one.id}: 95{THIN}% of such drives {'reach' if lower else 'stay below'} {quantity(known.normal, one.unit)} "
        f"(95{THIN}% confidence, if their values are normally distributed{doubt})."
    )


def claim_sentence(one: LotQuestion) -> str:
    """Says whether such drives meet the requirement, and by which evidence."""
    claim, bound = one.claim, one.bound
    asked = bound if isinstance(bound, str) else quantity(bound, one.unit, trim=True)
    what = f"{SIDES[one.comparison]} {asked} at full scale"
    if claim.kind == "refuted":
        return f"{one.id}: such drives do not all meet {what}: refuted by {_some(claim.drives)}."
    why = claim.reason + (f" ({_some(claim.drives)})" if claim.drives else "")
    if claim.kind == "met":
        return f"{one.id}: such drives meet {what}: {why}."
    return f"{one.id}: whether such drives meet {what} stays open: {why}."


def _slowest(found: Lot) -> Iterator[str]:
    if one := found.requirement_judged:
        yield from stripe_sentence(one)


def stripe_sentence(one: LotQuestion) -> Iterator[str]:
    """Says which drive a stripe waits for, the cost of that, and how certain it is; nothing where drives' values do not add up."""
    known = one.limiting
    if known is None or (stripe := known.stripe) is None:
        return
    lost = 1 - stripe.rate / stripe.sum_rate
    text = (
        f"The slowest drive, {known.drive}, is {percent(100 * known.behind_mean)} behind the mean: a stripe of {stripe.members} "
        f"with it gives {quantity(stripe.rate, one.unit)} ({stripe.members} times the slowest), {percent(100 * lost)} less "
        "than by the mean. "
    )
    outlier, following, apart = known.outlier_p, known.next_p, one.spread.p
    if outlier is not None and outlier < SURE:
        text += "It stands out of the drive-to-drive spread."
    elif outlier is not None:
        text += "It lies within the drive-to-drive spread: one drive in such a lot has to be the slowest."
    else:
        text += "Two drives have no spread to stand out of."
    if apart is not None and apart >= SURE:
        text += " The drives differ by no more than their repetitions do."
    elif following is not None and following >= SURE:
        text += f" That it is slower than the next one, {known.next}, is not certain."
    elif following is None:
        text += " Without repetitions nobody knows whether it would be the slowest again."
    yield text


def _differences(found: Lot) -> Iterator[str]:
    for one in found.differences:
        rare = [serial for value in one.values[1:] for serial in value.serials]
        values = " / ".join(
            value.value if len(value.value) < 40 else f"{len(value.serials)} alike" for value in one.values[:4]
        )
        yield f"Drives of one model differ in {one.what} ({values}): {_some(rare, 4)}."
    for change in found.changed[:CHANGES_MAX]:
        yield f"{change.serial} changed its {change.what} from run to run."
    if len(found.changed) > CHANGES_MAX:
        yield f"{len(found.changed) - CHANGES_MAX} more readings of drives changed from run to run."
    yield from cluster_sentences(found)


def cluster_sentences(lot: Lot) -> Iterator[str]:
    """Describes the two groups in the values, and the reported differences that go with them."""
    for one in lot.requirements:
        found = one.clusters
        if found is None or not found.there:
            continue
        p = "< 0.001" if found.p < 0.001 else f"= {found.p:.2g}"
        if found.goes_with:
            why = f"this goes with {', '.join(found.goes_with)}"
        else:
            why = (
                "no firmware or other reported difference goes with it: ask the supplier for the components' revisions"
            )
        yield (
            f"{one.id} falls into two groups, {len(found.low)} lower ({_some(found.low, 4)}) and {len(found.high)} higher, "
            f"which one lot would hardly show (p {p}); {why}."
        )


def _untested(found: Lot) -> Iterator[str]:
    accepted = found.acceptance
    if accepted and accepted.unresolved:
        yield f"Counted as failing in all shares, since they have no run that counts: {_some(accepted.unresolved)}."
    untested = [drive.serial for drive in found.drives if drive.outcome == "not tested"]
    if untested:
        yield f"Not tested in a run of its own that counts: {_some(untested)}."
    if found.lot_size is None:
        yield "The size of the lot was not given: what is said holds for drives of the kind, as if they were taken at random."
