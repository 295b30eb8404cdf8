"""Findings of the door of `daq-bench check-bundle` (rig.checking.door) on one bundle, for readers that show or rank runs.

Promise: it rests on the reader's own trust and profiles, never on the bundle's word. Whoever shows a run shows `marks` beside it."""

from __future__ import annotations

from typing import Literal

import msgspec

from daq_bench.bench_model.documents.struct import Struct

Worth = Literal["trusted", "unsigned", "unknown", "not valid", "bad"]
UNSIGNED, DIFFERENT, NOT_EXTRACTED = "unsigned", "different from yours", "not extracted"
NO_TRUSTED_KEY: dict[Worth, str] = {
    "unsigned": UNSIGNED,
    "unknown": "signed by a key that you do not list",
    "not valid": "signed by a key that was not valid for it",
    "bad": "its signature is bad",
}
MOST_NAMED = 3


class Admission(Struct, frozen=True):
    """`bundle`: its folder. `signature`: the worth of the evidence's. `problems`: what was altered, moved, or follows from nothing.
    `not_extracted`: results that could not be extracted again, and why. `different`: fields of its profiles that are not the reader's."""

    bundle: str
    signature: Worth
    problems: list[str] = msgspec.field(default_factory=list)
    not_extracted: list[str] = msgspec.field(default_factory=list)
    different: list[str] = msgspec.field(default_factory=list)

    @property
    def marks(self) -> tuple[str, ...]:
        """The words that stand beside the run; none for one that a trusted key signed, by the reader's profiles, extracted again."""
        found = [] if self.signature == "trusted" else [NO_TRUSTED_KEY[self.signature]]
        if self.different:
            found.append(f"{DIFFERENT}: {named(self.different)}")
        return (*found, *([NOT_EXTRACTED] if self.not_extracted else []))

    @property
    def short(self) -> tuple[str, ...]:
        """The same without the fields that differ, where room is short."""
        return tuple(one.partition(":")[0] for one in self.marks)

    @property
    def refusal(self) -> str:
        """Why nobody may rest on the run, as a predicate; empty for one that shows no fault."""
        return f"does not pass check-bundle ({named(self.problems, '; ')})" if self.problems else ""

    def unrankable(self, accept_unsigned: bool) -> str:
        """Why a tender may not rank the run, with the remedy; empty where it may. `accept_unsigned`: without a trusted signature, too."""
        if self.refusal:
            return f"{self.refusal}. Leave the run out"
        if self.not_extracted:
            return f"its results were not extracted again ({named(self.not_extracted, '; ')}). Measure again with this bench"
        if self.different:
            ours = "Name those that you asked it by: --own-scenario, --own-requirement"
            return f"its profiles are {DIFFERENT} ({named(self.different)}). {ours}"
        if self.signature in ("unsigned", "unknown") and accept_unsigned:
            return ""
        if self.signature != "trusted":
            return (
                f"it is {NO_TRUSTED_KEY[self.signature]}. Name the keys that you trust with ALLOWED_SIGNERS=FILE, or rank it "
                "nevertheless with --accept-unsigned"
            ).replace("it is its", "its")
        return ""


class Admissions(Struct, frozen=True):
    """All that a reader asked for, in the order of its question."""

    runs: list[Admission]


def named(texts: list[str], sign: str = ", ") -> str:
    more = f"{sign}and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return sign.join(texts[:MOST_NAMED]) + more
