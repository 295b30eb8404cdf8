"""The bounds that K passing of n tested drives set on the lot of N that they came from. Pure.

For a lot without an end: Clopper & Pearson, Biometrika 26 (1934) 404. For N drives: the hypergeometric distribution, which knows
that the tested ones are among them. Acceptance plans with acceptance number 0: sample sizes and acceptable quality limits after
ISO 2859-1:1999 (single sampling, normal inspection, general level II; tables 1 and 2-A)."""

from __future__ import annotations

import scipy

from daq_bench.bench_model.documents.lot import AcceptancePlan

CONFIDENCE = 0.95

# (largest lot, code letter, sample size, acceptable quality limit in percent at acceptance number 0)
PLANS = (
    (8, "A", 2, 6.5), (15, "B", 3, 4.0), (25, "C", 5, 2.5), (50, "D", 8, 1.5), (90, "E", 13, 1.0), (150, "F", 20, 0.65),
    (280, "G", 32, 0.40), (500, "H", 50, 0.25), (1200, "J", 80, 0.15), (3200, "K", 125, 0.10), (10_000, "L", 200, 0.065),
)  # fmt: skip


def passing_share(passed: int, tested: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Two-sided interval of the share that passes, from K of n. Raises ValueError for impossible numbers."""
    _check(passed, tested)
    tail = (1 - confidence) / 2
    low = float(scipy.stats.beta.ppf(tail, passed, tested - passed + 1)) if passed else 0.0
    high = float(scipy.stats.beta.ppf(1 - tail, passed + 1, tested - passed)) if passed < tested else 1.0
    return low, high


def passing_share_at_least(passed: int, tested: int, confidence: float = CONFIDENCE) -> float:
    """One-sided: the share of such drives that passes is at least this."""
    _check(passed, tested)
    return float(scipy.stats.beta.ppf(1 - confidence, passed, tested - passed + 1)) if passed else 0.0


def failing_at_most(passed: int, tested: int, lot: int, confidence: float = CONFIDENCE) -> int:
    """One-sided: at most so many of the lot's N drives fail, the tested ones included."""
    _check(passed, tested)
    if lot < tested:
        raise ValueError(f"a lot of {lot} cannot have {tested} tested drives")
    failed = tested - passed
    most = failed
    for defective in range(failed, lot - passed + 1):
        if float(scipy.stats.hypergeom.cdf(failed, lot, defective, tested)) > 1 - confidence:
            most = defective
    return most


def acceptance_chance(lot: int, defective: int, sample: int) -> float:
    """Chance that a sample of the lot has no failing drive: a point of the plan's operating characteristic."""
    return float(scipy.stats.hypergeom.cdf(0, lot, defective, sample))


def plan_for(lot: int) -> AcceptancePlan | None:
    """The plan with acceptance number 0; None for a lot of one drive or of more than ten thousand. Small lots are tested whole."""
    if lot < 2:
        return None
    for largest, letter, sample, aql in PLANS:
        if lot <= largest:
            return AcceptancePlan(letter, min(sample, lot), aql)
    return None


def _check(passed: int, tested: int) -> None:
    if not 0 <= passed <= tested or tested < 1:
        raise ValueError(f"{passed} passing of {tested} tested is impossible")
