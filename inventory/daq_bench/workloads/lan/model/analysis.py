"""results/lan_analysis.json: what follows from the transfers of `lan`. A pure function of results/lan.json, the tools' own output in
results/raw/ and the telemetry.

Goodput is what arrived. A transfer counts only if its tools ended well and their output is whole. Where less arrived than is needed while a
CPU of the load's own host had nothing left, the port was not measured, and the point is masked. Settings are compared in pairs of
alternating order (bench_model.statistics.paired)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.files import find_document, read_text
from daq_bench.bench_model.bundle.telemetry_tracks import Tracks
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.statistics.paired import ABOVE, CONFIDENCE, Pair, PairedEstimate, compare
from daq_bench.workloads.lan.model.transfers import Raw, transfer
from daq_bench.workloads.lan.plan import (
    ALL,
    ALL_BUILDERS,
    GBIT,
    HELD,
    JUDGED_KINDS,
    KINDS,
    MANY_TO_ONE,
    QUANTITIES,
    TUNED,
    UNTUNED,
)

RESULTS = "lan.json"
METRICS = "lan"
# The values that the presentation states in words; it does not state the points of its figures, so they are not drawn.
PUBLISHED: Document = {
    "source": "Campora Perez, Neufeld, Otto, Pisani, Schwemmer, A first look at 100 Gbps LAN technologies (CHEP 2015)",
    "conditions": "ConnectX-4, EDR InfiniBand, alpha driver, 2 x Xeon E5-2650 v3, OFED benchmarks 40 s per message size",
    "ofed_bytes_per_s": 80 * GBIT,
    "bidirectional_bytes_per_s": 150 * GBIT,
    "event_building_bytes_per_s": 80 * GBIT,
    "needed_bytes_per_s": 64 * GBIT,  # 100 kB x 40 MHz over 500 sources
}


def of_bundle(bundle: Path, run: Run) -> Document | None:
    """None for a run without such a measurement."""
    found = find_document(bundle, f"results/{RESULTS}")
    if found is None:
        return None

    def raw(name: str) -> str:
        return read_text(bundle, f"results/raw/{name}", errors="replace")

    return document(found, raw, telemetry_tracks.of_bundle(bundle))


def document(found: Document, raw: Raw, tracks: Tracks) -> Document:
    """The analysis of results/lan.json; `raw` gives a tool's output by its file's name."""
    need = found["need_bytes_per_s"]
    made = [transfer(one, raw, tracks, need) for one in found["transfers"]]
    of_kind = {kind: [one for one in made if one["kind"] == kind] for kind in KINDS}
    settings = _experiments([one for one in made if one["kind"] == "setting"])
    records = [record for one in found["transfers"] for record in one["settings"]]
    judged, reasons = judged_of(need, of_kind, settings, records, sum(one["failed"] for one in made))
    return {
        "schema_version": 1,
        "confidence": CONFIDENCE,
        "published": PUBLISHED,
        **of_kind,
        "settings": settings,
        "tuned_settings": read_backs(records),
        "judged": judged,
        "reasons": reasons,
        "notes": _notes(found, made, settings),
    }


def _experiments(trials: Sequence[Document]) -> list[Document]:
    """Each setting's own contribution, and that of all together: tuned over untuned, in bandwidth and in latency."""
    names = list(dict.fromkeys(one["trial"]["experiment"] for one in trials))
    return [
        {
            "id": name,
            **{
                key: _compared([one for one in trials if one["trial"]["experiment"] == name], key) for key in QUANTITIES
            },
        }
        for name in names
    ]


def _compared(trials: Sequence[Document], quantity: str) -> Document:
    own = [one for one in trials if one["trial"]["quantity"] == quantity]
    pairs, masked = [], []
    for number in sorted({one["trial"]["pair"] for one in own}):
        sides = {one["trial"]["side"]: one for one in own if one["trial"]["pair"] == number}
        bad = next((f"pair {number}, {side}: {one['reason']}" for side, one in sides.items() if one["failed"]), None)
        if bad or len(sides) < 2:
            masked.append(bad or f"pair {number}: one side was not measured")
            continue
        tuned, untuned = (_value(sides[side], quantity) for side in (TUNED, UNTUNED))
        pairs.append(Pair(number, sides[UNTUNED]["trial"]["first"], tuned / untuned))
    result = compare(pairs) if pairs else None
    return {
        "n": len(pairs), "ratios": [pair.ratio for pair in pairs], **_ratio(result), "masked": masked,
        "reason": None if result else (masked or ["it was not measured"])[0],
    }  # fmt: skip


def _value(one: Document, quantity: str) -> float:
    """Goodput, or the median latency (perftest's mean). A starved side is a value too: both sides have the same CPUs."""
    if quantity == "bandwidth":
        return float(one["bytes_per_s"])
    latency = one["latency_us"]
    return float(latency["p50"] or latency["mean"])


def _ratio(result: PairedEstimate | None) -> Document:
    return {
        "ratio": result.ratio if result else None,
        "interval": list(result.interval) if result and result.interval else None,
        "decision": result.decision if result else None,
        "method": result.method if result else None,
    }


def read_backs(records: Sequence[Document]) -> list[Document]:
    """Each setting and value that was asked for, at each port, once: what was there, what was read back, whether it held and went back."""
    found: dict[tuple[str, str, str], Document] = {}
    for one in records:
        kept = found.setdefault((one["id"], one["at"], one["asked"]), {**one, "times": 0})
        kept["times"] += 1
        for key in ("held", "restored"):
            if one[key] is False:
                kept[key] = False
        if one["status"] not in HELD:
            kept |= {"status": one["status"], "detail": one["detail"]}
    return list(found.values())


def _not_as_asked(record: Document) -> bool:
    if record["status"] == "unsupported":
        return False
    return record["status"] not in HELD or record["held"] is False or record["restored"] is False


def judged_of(
    need: float,
    of_kind: dict[str, list[Document]],
    settings: Sequence[Document],
    records: Sequence[Document],
    failed: int,
) -> tuple[Document, Document]:
    """Returns the values that requirements bound, and the reason for each metric without one. `failed`: transfers of all kinds."""
    reasons: Document = {}

    def shares(name: str, points: Sequence[Document]) -> list[float]:
        bad = next((f"{one['id']}: {one['reason']}" for one in points if not one["admissible"]), None)
        if bad or not points:
            reasons[f"{METRICS}.{name}"] = bad or "it was not measured"
            return []
        return [one["port_bytes_per_s"] / need for one in points]

    crowd = [one for one in of_kind["crowd"] if one["operation"] == MANY_TO_ONE]
    incast = [one for one in crowd if one["admissible"]]
    whole = next((one for one in settings if one["id"] == ALL), None)
    latency = whole["latency"] if whole and whole["latency"]["n"] else None
    if latency is None:
        reasons[f"{METRICS}.latency_ratio"] = whole["latency"]["reason"] if whole else "no setting was tried"
        reasons[f"{METRICS}.latency_worse"] = reasons[f"{METRICS}.latency_ratio"]
    judged = {
        "port_share": shares("port_share", of_kind["confirmation"]),
        "incast_share": shares("incast_share", crowd),
        "building_share": shares(
            "building_share", [one for one in of_kind["build"] if one["operation"] == ALL_BUILDERS]
        ),
        "incast_fairness": [one["fairness"] for one in incast],
        "incast_sent_again": [one["sent_again_share"] for one in incast if one["sent_again_share"] is not None],
        "latency_ratio": latency["ratio"] if latency else None,
        "latency_interval": latency["interval"] if latency else None,
        "latency_worse": int(latency["decision"] == ABOVE) if latency else None,
        "settings_not_held": sum(_not_as_asked(one) for one in records) if records else None,
        "settings_tried": len([one for one in settings if one["id"] != ALL]),
        "failed_transfers": failed,
        "starved_transfers": sum(one["starved"] for kind in JUDGED_KINDS for one in of_kind[kind]),
    }
    for name in ("incast_fairness", "incast_sent_again"):
        if not judged[name]:
            reasons[f"{METRICS}.{name}"] = reasons.get(
                f"{METRICS}.incast_share", "RDMA tells no segments that were sent again"
            )
    if not records:
        reasons[f"{METRICS}.settings_not_held"] = "no setting was tried"
    return judged, reasons


def _notes(found: Document, made: Sequence[Document], settings: Sequence[Document]) -> list[str]:
    """Returns sentences on what this run cannot show."""
    notes = []
    if all(one["memory_bytes_per_s"] is None for one in made):
        notes.append(
            "Memory bandwidth was not measured: no sample of the agent's collector memory_bandwidth lies within a transfer (it needs "
            "resctrl, or perf on an Intel server, and a transfer of some 10 s)."
        )
    if found["network"]["kind"] == "namespaces":
        notes.append(
            "All nodes share this machine's CPUs: CPU use is that of senders, receivers and the emulated switch together."
        )
    again = [one["id"] for one in found["transfers"] if one.get("attempts", 1) > 1]
    if again:
        notes.append(
            f"Tools that did not come to a connection were started again for {len(again)} transfers: {', '.join(again[:5])}."
        )
    notes += [f"Setting {one['id']}: {one['reason']}." for one in found["left_out"]]
    return notes
