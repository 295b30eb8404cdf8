"""Checks that a bundle names one run of one machine, and tells all of it: compares its folder, run.json, the facts that were read from
the candidate, and its events with their copy in the telemetry."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from daq_bench.bench_model.bundle.files import find_document, find_struct, plain_file, read_structs
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.facts import Identity
from daq_bench.bench_model.documents.run import Drive, Host, Run
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.verdict.judging import VERDICT
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.event_lines import moment_line, moments
from daq_bench.rig.candidate.host import Node, Survey, Target, check_identity
from daq_bench.rig.checking.sealing import altered_evidence

LAB, IDENTITY, HOST = "profiles/lab.yml", "results/identity.json", "facts/host.json"
EVENTS, WORKLOAD = "events.jsonl", "telemetry/workload.lp"
CLOCK_MS = 1  # the two files round one moment differently
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


def event_problems(bundle: Path, run: Run) -> list[str]:
    """Returns the faults of events.jsonl. `Bundle.event` writes each event there and into workload.lp; a judged run's last is the verdict,
    but for the phase in which the report is made."""
    events = read_structs(bundle, EVENTS, Event)
    told, copied = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for event in events:
        line = moment_line(run.run_id, event.kind, event.source, event.text, 0)
        told[line.rpartition(" ")[0]].append(round(event.time_s * 1e3))
    if file := plain_file(bundle, WORKLOAD):
        for head, at_ns in moments(file):
            copied[head].append(at_ns // 10**6)
    odd = [head for head in dict.fromkeys((*told, *copied)) if not _same_moments(told[head], copied[head])]
    problems = [f"{EVENTS}: does not hold the same events as {WORKLOAD}, such as {odd[0][:200]}"] if odd else []
    stored = find_document(bundle, VERDICT)
    if stored is not None:
        ends = [event for event in events if event.kind != "phase"][-1:]
        if [(one.kind, one.text) for one in ends] != [("verdict", stored.get("outcome"))]:
            last = f"{ends[0].kind}: {ends[0].text!r:.100}" if ends else "nothing"
            problems.append(f"{EVENTS}: its last event is not the verdict of {VERDICT}, but {last}: it breaks off")
    return problems


def _same_moments(some: list[int], others: list[int]) -> bool:
    pairs = zip(sorted(some), sorted(others), strict=False)
    return len(some) == len(others) and all(abs(one - other) <= CLOCK_MS for one, other in pairs)


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
