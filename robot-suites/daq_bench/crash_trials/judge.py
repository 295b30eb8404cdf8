"""The judge of a trial: each demand is a function that returns what it objects to. It asks files and processes, not the bench."""

from __future__ import annotations

from pathlib import Path

from daq_bench.bench_model.bundle.spool_content import read_content
from daq_bench.bench_model.documents.verdict import ERROR, INADMISSIBLE, PASS
from daq_bench.crash_trials.candidate import BEFORE, DIRECTORY, LightCandidate
from daq_bench.crash_trials.processes import marked, of_the_bench
from daq_bench.crash_trials.trial import REQUIREMENT, SCENARIO, Killed, Place, document, wait_until
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.cli.exits import EXIT
from daq_bench.rig.telemetry.influx_counts import count_points

GRACE_S = 45.0  # the bench's own grace for a load (15 s), and the candidate's notice of a lost connection (15 s)
STATE, RUNS = "var/lib/daq-storage-bench/state", "var/lib/daq-storage-bench/runs"
BEFORE_THE_LOAD = {"before the bundle", "provision"}
BEHIND_THE_LOAD = {"telemetry", "restore", "report"}


def allowed(kind: str, phase: str) -> set[str]:
    """The outcomes that are right after a kill of that kind in that phase, in the words of the simulation. Never FAIL: nothing befell the
    candidate."""
    if kind == "influxd":
        return {PASS}
    if kind in ("fio", "daqwriter", "robot"):
        return {ERROR}
    if phase in BEHIND_THE_LOAD or (
        kind == "ssh" and phase in BEFORE_THE_LOAD
    ):  # the evidence is whole; the bench connects again
        return {PASS, ERROR, INADMISSIBLE}
    return {ERROR, INADMISSIBLE}


def outcome(killed: Killed, kind: str) -> list[str]:
    """The exit status, the state and the verdict, as the contract has them."""
    if "Traceback" in killed.text:
        return ["the command ended with a traceback"]
    if kind == "rig":
        return [] if killed.status == -9 else [f"the killed command ended with {killed.status}"]
    verdict = document(killed.bundle, "verdict.json").get("outcome", ERROR)
    found = [] if killed.status == EXIT.get(verdict) else [f"exit status {killed.status} with the verdict {verdict}"]
    right = allowed(kind, killed.phase)
    return found + ([] if verdict in right else [f"{verdict} where {' or '.join(sorted(right))} is right"])


def bundle_is_readable(place: Place, killed: Killed) -> list[str]:
    """check-bundle says what is missing, `judge` never passes a run that did not end; neither breaks."""
    bundle = killed.bundle
    if bundle is None:
        return []
    found = []
    checked, judged = place.rig("check-bundle", str(bundle), *_own()), place.rig("judge", str(bundle))
    if "Traceback" in checked.text + judged.text:
        found.append("check-bundle or judge ended with a traceback")
    run, sealed = document(bundle, "run.json"), (bundle / "MANIFEST.sha256").exists()
    if judged.status == 0 and run.get("state") != "finished":
        found.append("judge passes a run that did not finish")
    if not sealed and (checked.status == 0 or not checked.text.strip()):
        found.append("check-bundle finds nothing wrong with a bundle that has no seal")
    if sealed and checked.status != 0:
        found.append(f"check-bundle refuses a bundle that the bench has closed: {_end(checked.text)}")
    return found


def _own() -> list[str]:
    return ["--scenario", str(SCENARIO), "--requirement", str(REQUIREMENT)]


def processes_ended(place: Place, *, but: str = "") -> list[str]:
    """Nothing of the bench runs on either side once its grace is over; `but`: what may."""

    def left() -> list[str]:
        there = of_the_bench(place.candidate.container.pid)
        return [words for words in (*marked(place.token).values(), *there) if not but or but not in words]

    wait_until(lambda: not left(), GRACE_S)
    return [f"still runs: {words[:120]}" for words in left()]


def recorded_while_tuned(candidate: LightCandidate) -> list[str]:
    """A candidate that is tuned has the values from before beside it."""
    state = candidate.root / STATE
    remembers = state.is_dir() and any(state.rglob("*.json"))
    return [] if candidate.settings() == BEFORE or remembers else [f"tuned ({candidate.settings()}) without a record"]


def is_as_before(candidate: LightCandidate) -> list[str]:
    """Settings, files, programs and processes of a candidate that was given back."""
    settings = {name: value for name, value in candidate.settings().items() if value != BEFORE[name]}
    found = [f"left tuned: {settings}"] if settings else []
    root = candidate.root
    left = candidate.command(f"find {DIRECTORY} /{RUNS} /opt -mindepth 1 -maxdepth 1 2>/dev/null; true").split()
    left += [str(file.relative_to(root)) for file in (root / "etc/systemd/system").glob("daq-bench*")]
    left += [str(file.relative_to(root)) for file in (root / STATE).rglob("*.json")]
    found += [f"left behind: {name}" for name in left]
    return found + [f"still runs: {words[:120]}" for words in of_the_bench(candidate.container.pid)]


def control_node_is_clean(place: Place) -> list[str]:
    return [f"left in the temporary folder: {file.name}" for file in sorted((place.folder / "tmp").iterdir())]


def telemetry_is_kept(place: Place, killed: Killed) -> list[str]:
    """Every line that the agent had stored when the process was killed is in a bundle."""
    if killed.bundle is None:
        return []
    held: set[str] = set()
    for file in place.runs.glob("*/telemetry/**/points.lp"):
        held |= set(file.read_text(encoding="utf-8", errors="replace").split("\n"))
    lost = killed.spool - held
    return [f"{len(lost)} of {len(killed.spool)} acknowledged points are in no bundle"] if lost else []


def telemetry_is_in_influxdb(place: Place, bundle: Path) -> list[str]:
    """After `replay`, InfluxDB holds as many points as the bundle."""
    url = place.influx_url()
    said = place.rig("replay", str(bundle), "--influx-url", url, "--inventory", str(place.lab))
    if said.status != 0:
        return [f"replay: {_end(said.text)}"]
    content = read_content(bundle / "telemetry" / "points.lp")
    wanted = content.points_by_series()
    missing = sum(wanted.values()) - sum(count_points(Influx(url), bundle.name, wanted).values())
    return [f"InfluxDB lacks {missing} points after the replay"] if missing > 0 else []


def _end(text: str) -> str:
    return " ".join(text.split())[-200:]
