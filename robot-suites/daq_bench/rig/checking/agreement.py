"""Checks that a bundle names one run of one machine: compares its folder, run.json, and the facts that were read from the candidate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from daq_bench.bench_model.bundle.files import find_document, find_struct, plain_file
from daq_bench.bench_model.documents.facts import Identity
from daq_bench.bench_model.documents.run import Drive, Host, Run
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.candidate.host import Node, Survey, Target, check_identity
from daq_bench.rig.checking.sealing import altered_evidence

LAB, IDENTITY, HOST = "profiles/lab.yml", "results/identity.json", "facts/host.json"
OF_THE_HOST = ("hostname", "architecture", "cpu_model")  # neither provisioning nor a restart changes them
CHALLENGE = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")


def challenge(text: str) -> str:
    """Returns the nonce itself. Raises ValueError for one that is not of the form that run.json takes."""
    if not CHALLENGE.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no challenge: 1 to 128 of the characters A-Z a-z 0-9 . _ : + / = @ -")
    return text


def challenge_problems(run: Run, asked: str | None) -> list[str]:
    """Returns the faults of the bundle's challenge. `asked`: the one that the checker gave to the run; None: the checker names none."""
    stated = run.challenge
    if stated is not None and not CHALLENGE.fullmatch(stated):
        return ["run.json: challenge is no nonce that `daq-bench qualify --challenge` takes"]
    if asked is not None and stated != asked:
        answer = f"answers the challenge {stated!r}" if stated else "answers no challenge"
        return [f"run.json: the run {answer}, not yours, {asked!r}: it may be another run, made before you asked"]
    return []


def changes_since(bundle: Bundle) -> list[str]:
    """Returns what is no longer as the sealed run left it: the folder's name, and each file of the evidence. Raises BenchError for
    a bundle without a sound seal."""
    return folder_problems(bundle.path, bundle.run) + [one.text for one in altered_evidence(bundle.path)]


def folder_problems(path: Path, run: Run) -> list[str]:
    if run.run_id == path.name:
        return []
    return [f"the folder is named {path.name!r}, but run.json: run_id is {run.run_id!r}: a run keeps its name"]


def identity_problems(bundle: Path, run: Run) -> list[str]:
    """Returns faults where run.json's candidate is not the machine of the run's identity check and facts."""
    name = run.candidate.name
    if plain_file(bundle, LAB) is None:
        return [f"{LAB}: is missing, so that nothing says which machine {name!r} is"]
    candidate = load_candidate(bundle / LAB, name)
    if run.target.name:
        candidate = candidate.aimed_at(run.target.name)
    return [*_host(bundle, run), *_checks(bundle, candidate, run)]


def _host(bundle: Path, run: Run) -> Iterator[str]:
    facts = find_document(bundle, HOST) or {}
    for key in OF_THE_HOST:
        stated = getattr(run.candidate, key)
        # For a processor without a name (ARM) provisioning's facts say null, and the survey at the run's start says "unknown".
        unnamed = key == "cpu_model" and facts.get(key) is None and stated == "unknown"
        if key in facts and facts[key] != stated and not unnamed:
            yield f"{HOST}: {key} is {facts[key]!r}, but run.json: candidate.{key} is {stated!r}"


def _checks(bundle: Path, candidate: Candidate, run: Run) -> Iterator[str]:
    """Yields differences of the identity check, made again from run.json's statements; no other document has drives besides the target."""
    document = find_struct(bundle, IDENTITY, Identity)
    if document is None:
        return  # the judge says that no identity was checked
    stored = {one.subject: one for one in document.checks}
    if len(stored) != len(document.checks):
        yield f"{IDENTITY}: a subject stands twice"
    for again in check_identity(candidate, _survey(run)):
        subject = again.subject
        if subject.startswith(("drive ", "model of ", "firmware of ")) and again.found in ("absent", "not reported"):
            continue
        if (was := stored.get(subject)) is None:
            yield f"{IDENTITY}: has no check of the {subject}, which {LAB} declares"
        elif any(
            getattr(was, key) != getattr(again, key) for key in ("declared", "found", "ok") if not _path(subject, key)
        ):
            yield (
                f"{IDENTITY}: {subject} was declared as {was.declared!r} and found as {was.found!r}; "
                f"run.json and {LAB} say {again.declared!r} and {again.found!r}"
            )


def _path(subject: str, key: str) -> bool:
    """Says whether `key` of the subject is a drive's device node, which a restart may change."""
    return key == "found" and re.fullmatch(r"drive (?!under ).*", subject) is not None


class _Stated(Survey, frozen=True):
    """A survey made of run.json's statements, where the drives beneath the target stand by themselves."""

    def drives_of(self, device: Drive | None) -> list[Drive]:
        return [node.description for node in self.devices]


def _survey(run: Run) -> Survey:
    told = {name: getattr(run.candidate, name) for name in Host.__struct_fields__}
    nodes = [Node(one.name, f"/dev/{one.name}", "disk", None, one) for one in run.target.drives]
    return _Stated(Host(**told), nodes, Target(run.target.filesystem, 0, None), 0.0)
