"""summary.md: for each part the comparison, the criteria, and the reasons against taking the figures as a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from daq_bench.bench_model.base.units import GIB, decimal_label
from daq_bench.bench_rounds.part import Documents, Part


def summary(documents: Documents, parts: Mapping[str, Part], interrupted: bool = False) -> str:
    """Markdown. Parts without a document are named as not run."""
    lines = ["# daqwriter against the hardware's limit", ""]
    reservations = sorted({text for document in documents for text in document["reservations"]})
    if interrupted:
        reservations.append("interrupted: only finished parts are shown")
    lines += [f"**Not a claim: {text}.**\n" for text in reservations]
    if documents:
        lines += [machine_line(documents[0]), ""]
    lines += [
        "GB = 10^9 B. Ratios: median of the paired ratios [interval of at least 90 %, or the range where n is too small] "
        "n = pairs. Rates and costs: medians. A CPU ratio below 1 is in daqwriter's favour.",
        "",
    ]
    for document in documents:
        lines += section(document, parts[document["part"]])
    missing = [name for name in parts if name not in {document["part"] for document in documents}]
    if missing:
        lines += [f"Not run: {', '.join(missing)}.", ""]
    return "\n".join([*lines, verdict(documents)]) + "\n"


def machine_line(document: dict[str, Any]) -> str:
    machine, versions = document["machine"], document["versions"]
    device = machine["device"] or {"name": "no single drive", "model": None}
    return (
        f"{machine['cpu_model']}, {machine['cpus']} CPUs, {machine['memory_bytes'] / GIB:.0f} GiB; "
        f"Linux {machine['kernel']}, governor {machine['governor'] or 'not reported'}; "
        f"{machine['filesystem']} on {device['name']} ({device['model'] or 'model not reported'}), "
        f"{decimal_label(machine['free_bytes'])} free; CPUs {100 * machine['busy_share_before']:.0f} % busy before; "
        f"{versions['fio']}, {versions['daqwriter']}, bench {versions['bench']}; {document['started_utc']}"
    )


def section(document: dict[str, Any], part: Part, short: bool = False) -> list[str]:
    """`short`: the points are counted, not shown."""
    header = ["", *[name for name, _ in part.columns], "limited by"]
    points = document["points"]
    rows = [[one["label"], *[cell(one) for _, cell in part.columns], one["limited_by"]] for one in points if not short]
    shown = [f"{len(points)} points, not shown here."] if short else table(header, rows)
    lines = [f"## {document['part']}: {document['title']}", "", *shown, ""]
    lines += [f"- {point['label']}: {why}" for point in document["points"] for why in failures(point)]
    lines += [f"- {note}" for note in document["notes"]]
    lines += part.appendix(document["points"])
    held = [
        [
            criterion["text"],
            f"{criterion['bound']:g}",
            "-" if criterion["value"] is None else f"{criterion['value']:.4g}",
            outcome(criterion),
        ]
        for criterion in document["criteria"]
    ]
    return [
        *lines,
        "",
        *(table(["criterion", "bound", "value", "outcome"], held) if held else ["Shown, not judged."]),
        "",
    ]


def outcome(criterion: dict[str, Any]) -> str:
    if criterion["met"]:
        return "met"
    if criterion["undecided"]:
        return f"**undecided** {criterion['undecided']}"
    return f"**missed** {'; '.join(criterion['misses'])}".rstrip()


def failures(point: dict[str, Any]) -> list[str]:
    return [f"{name} failed: {' '.join(why.split())[:300]}" for name, why in point["errors"].items()]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown of a table without its empty columns."""
    kept = [place for place in range(len(header)) if any(row[place] not in ("", "-") for row in rows)]
    lines = [
        [header[place] for place in kept],
        ["---" for _ in kept],
        *[[row[place] for place in kept] for row in rows],
    ]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def missed(documents: Documents) -> list[str]:
    return [one["id"] for one in _criteria(documents) if not one["met"] and not one["undecided"]]


def undecided(documents: Documents) -> list[str]:
    return [one["id"] for one in _criteria(documents) if one["undecided"]]


def _criteria(documents: Documents) -> list[dict[str, Any]]:
    return [one for document in documents for one in document["criteria"]]


def verdict(documents: Documents) -> str:
    if not documents:
        return "Result: no part was finished."
    count = len(_criteria(documents))
    if count == 0:
        return "Result: shown, not judged."
    said = [
        f"{what} {', '.join(names)} ({len(names)} of {count})"
        for what, names in (("missed", missed(documents)), ("undecided", undecided(documents)))
        if names
    ]
    return f"Result: {'; '.join(said)}." if said else f"Result: all {count} criteria hold."
