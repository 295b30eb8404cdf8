"""The words of check-bundle's door stand beside each run, and a tender ranks only what passed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from comparison_runs import FAST, SLOW, Roots, compared, html_of, plain

from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.reading.door import Trust

Doorkeeper = Callable[..., None]
ACCEPT = Trust(accept_unsigned=True)


def test_unsigned_runs_are_shown_and_not_ranked_unless_that_was_asked_for(
    runs_of: Roots, weights: Path, doorkeeper: Doorkeeper
) -> None:
    roots = runs_of(*FAST, *SLOW)
    doorkeeper("-fast-", signature="unsigned")
    found = compared(roots, weights=weights)
    assert found.not_ranked == ["fast"] and found.accepted_unsigned == []
    reasons = {run.reason for run in found.runs if run.contender == "fast"}
    (reason,) = reasons
    assert reason.startswith("it is unsigned.") and "ALLOWED_SIGNERS=FILE" in reason and "--accept-unsigned" in reason
    assert {tuple(run.marks) for run in found.runs} == {("unsigned",), ()}
    found = compared(roots, weights=weights, trust=ACCEPT)
    assert found.not_ranked == [] and len(found.accepted_unsigned) == len(FAST)
    text = plain(html_of(roots, weights=weights, trust=ACCEPT))
    first = text[: text.index("Compliance and ranking")]
    assert "Unsigned runs are ranked" in first and "Nobody vouches for these runs" in first


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"different": ["requirement tender: TND-01: bound"]}, "its profiles are different from yours (requirement tender: TND-01: bound)"),
        ({"not_extracted": ["no journal"]}, "its results were not extracted again (no journal)"),
        ({"signature": "not valid"}, "it is signed by a key that was not valid for it"),
        ({"signature": "bad"}, "its signature is bad"),
    ],
)  # fmt: skip
def test_acceptance_of_unsigned_runs_accepts_nothing_else(
    runs_of: Roots, doorkeeper: Doorkeeper, said: dict[str, object], reason: str
) -> None:
    doorkeeper("-fast-", **said)
    found = compared(runs_of(*FAST, *SLOW), trust=ACCEPT)
    assert found.not_ranked == ["fast"]
    assert all(run.reason.startswith(reason) for run in found.runs if run.contender == "fast")


def test_a_run_that_the_door_refuses_is_refused_by_name(runs_of: Roots, doorkeeper: Doorkeeper) -> None:
    roots = runs_of(*FAST[:1], *SLOW[:1])
    doorkeeper("-fast-", problems=["results/demo.json: rate is 2, extracted again 1"])
    with pytest.raises(BundleError) as refused:
        compared(roots, trust=ACCEPT)
    assert f"{roots[0].name} does not pass check-bundle (results/demo.json: rate is 2" in str(refused.value)
    assert roots[1].name not in str(refused.value)


def test_many_refused_runs_have_a_line_each_up_to_a_number(runs_of: Roots, doorkeeper: Doorkeeper) -> None:
    roots = runs_of(*FAST, *SLOW)
    doorkeeper("-demo", problems=["results/demo.json: rate is 2, extracted again 1"])
    with pytest.raises(BundleError) as refused:
        compared(roots, trust=ACCEPT)
    first, *lines, more, remedy = str(refused.value).splitlines()
    assert first.strip() == "6 of 6 runs are refused:" and len(lines) == 4 and more.strip() == "and 2 more"
    heads = {f"  {root}: {root.name} does not pass check-bundle" for root in roots}
    assert len({line.partition(" (")[0] for line in lines} & heads) == 4
    assert remedy.endswith("leave them out")
