"""The finished runs of a folder as a history: which are comparable, in which order, and which are left out and why."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, writable
from daq_bench.bench_model.base.units import in_digits, same_unit
from daq_bench.bench_model.bundle.dates import stamp_problem
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.nights.history_index import read_indexed
from daq_bench.bench_model.nights.night import LeftOut, Night

NOWHERE = "is a link that leads to no folder here. Mend it, or remove it"
NO_NAME = "its name is no UTF-8, which is no run's name. Give it its run's name again"


@dataclass(frozen=True)
class History:
    """Comparable runs in the order of their start. `notes`: what the reader has to know of the order and the profile."""

    candidate: str
    nights: tuple[Night, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]

    @property
    def newest(self) -> Night:
        return self.nights[-1]

    @property
    def last_good(self) -> Night | None:
        return next((night for night in reversed(self.nights) if night.good), None)


def bundles_in(paths: Iterable[Path]) -> list[Path]:
    """Each path that is a bundle, and the sub-folders of each other path, but for hidden ones (the index, copies under way). A link there
    stands for where it leads; one that leads nowhere is left out by `read_all`. A folder that is named twice, by whatever path, once.

    Raises BenchError for what is no folder. A sub-folder whose name is no UTF-8 is left out by `read_all`."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise BenchError(
                f"{path} is no folder. Name one of run bundles, or bundles; `daq-bench qualify` makes the first, in runs/"
            )
        if os.path.lexists(path / "run.json"):
            found.append(path)
        else:
            there = sorted(one for one in path.iterdir() if not one.name.startswith("."))
            found += [one for one in there if one.is_dir() and not one.is_symlink()]
            found += [_led_to(one) for one in there if one.is_symlink() and (one.is_dir() or not one.exists())]
    once: dict[str, Path] = {}
    for path in found:
        once.setdefault(os.path.realpath(path), path)
    return list(once.values())


def _led_to(link: Path) -> Path:
    """The bundle behind a link, which there has its run's name; the link itself where it leads nowhere."""
    try:
        return link.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a link to itself
        return link


def read_all(paths: Iterable[Path], candidate: str | None = None) -> tuple[list[Night], list[LeftOut]]:
    """Every bundle that others may rest on, and the others with what is wrong with them. `candidate`: without the runs of others."""
    found: list[Night | LeftOut] = []
    for folder, bundles in groupby(bundles_in(paths), key=lambda path: path.parent):
        there = list(bundles)
        lost = [bundle for bundle in there if not bundle.is_dir()]
        named = [bundle for bundle in there if writable(bundle.name) == bundle.name and bundle not in lost]
        found += read_indexed(folder, named, candidate)
        found += [LeftOut(writable(bundle.name), NOWHERE) for bundle in lost]
        found += [LeftOut(writable(bundle.name), NO_NAME) for bundle in there if bundle not in (*named, *lost)]
    nights = [one for one in found if isinstance(one, Night)]
    return nights, [one for one in found if isinstance(one, LeftOut)]


def history_of(
    nights: Sequence[Night], broken: Sequence[LeftOut], candidate: str, scenario: str | None = None
) -> History:
    """The runs of `candidate` that did what its newest run (of `scenario`) did. Raises BenchError when there is none."""
    left_out = list(broken)
    own = [night for night in nights if night.candidate == candidate]
    left_out += [
        LeftOut(one.path.name, f"is of candidate {one.candidate!r}") for one in nights if one.candidate != candidate
    ]
    own, twice = without_duplicates(own)
    left_out += twice
    ended = [night for night in own if night.state == FINISHED]
    left_out += [LeftOut(one.path.name, f"its run ended in state {one.state!r}") for one in own if one not in ended]
    asked = [night for night in ended if scenario in (None, night.scenario)]
    if not asked:
        raise BenchError(_nothing(nights, candidate, scenario, broken))
    asked.sort(key=lambda night: (night.started, night.id))
    sound, doubtful = _with_sound_clock(asked)
    left_out += doubtful
    if not sound:
        raise BenchError(f"no run of candidate {candidate!r} has a start that can be believed: {doubtful[0].reason}")
    chosen = [night for night in sound if night.task == sound[-1].task]
    doubted, kept = ({one.name for one in doubtful}, {night.path.name for night in chosen})
    others = [night for night in ended if night.path.name not in doubted | kept]
    left_out += [LeftOut(one.path.name, _other_task(one, sound[-1])) for one in others]
    return History(candidate, tuple(chosen), tuple(left_out), tuple(_notes(chosen)))


def _nothing(nights: Sequence[Night], candidate: str, scenario: str | None, broken: Sequence[LeftOut]) -> str:
    names = sorted({night.candidate for night in nights if night.state == FINISHED})
    of = f" of scenario {scenario!r}" if scenario else ""
    out = f". {len(broken)} left out, the first: {broken[0].name}: {broken[0].reason}" if broken else ""
    return (
        f"there is no finished run{of} of candidate {candidate!r}. Candidates found: {', '.join(names) or 'none'}{out}"
    )


def without_duplicates(nights: Sequence[Night]) -> tuple[list[Night], list[LeftOut]]:
    """Keeps, of runs that share an id, the first folder by name."""
    kept: dict[str, Night] = {}
    twice = []
    for night in sorted(nights, key=lambda one: (one.path.name != one.id, str(one.path))):
        if night.id in kept:
            twice.append(
                LeftOut(night.path.name, f"has the run id of {kept[night.id].path.name}, a copy; counted once")
            )
        else:
            kept[night.id] = night
    return list(kept.values()), twice


def _with_sound_clock(nights: Sequence[Night]) -> tuple[list[Night], list[LeftOut]]:
    """Runs in the order of their start, without those whose clock contradicts itself, their folder or another run.

    One that contradicts several is left out, so that one bad clock costs no other night. Where two contradict only each other, nobody
    knows which is wrong, and both are left out."""
    reasons = {night.id: reason for night in nights if (reason := _own_clock(night))}
    believed = [night for night in nights if night.id not in reasons]
    against: dict[int, set[int]] = {}
    for position in _contradicted(believed):
        for other in range(position + 1, len(believed)):
            if _contradiction(believed[position], believed[other]):
                against.setdefault(position, set()).add(other)
                against.setdefault(other, set()).add(position)
    while against:
        most = max(map(len, against.values()))
        worst = {position for position, others in against.items() if len(others) == most}
        for position in worst:
            first, last = sorted((position, min(against[position])))
            reasons[believed[position].id] = _contradiction(believed[first], believed[last])
        against = {one: left for one, own in against.items() if one not in worst and (left := own - worst)}
    doubtful = [
        LeftOut(night.path.name, f"the control node's clock jumped: {reasons[night.id]}")
        for night in nights
        if night.id in reasons
    ]
    return [night for night in nights if night.id not in reasons], doubtful


def _contradicted(nights: Sequence[Night]) -> list[int]:
    """The places, in order, of runs that any later one contradicts; among thousands that is hardly one."""
    places, fewest, following = [], dict[str, float](), None
    for position in range(len(nights) - 1, -1, -1):
        night = nights[position]
        overlaps = following is not None and night.finished is not None and following.started < night.finished
        if overlaps or any(hours > fewest.get(serial, hours) + 1 for serial, hours in night.power_on_h.items()):
            places.append(position)
        for serial, hours in night.power_on_h.items():
            fewest[serial] = min(hours, fewest.get(serial, hours))
        following = night
    return places[::-1]


def _own_clock(night: Night) -> str:
    if night.finished and night.finished < night.started:
        return "the run ended before it began"
    return stamp_problem(night.id, night.started)


def _contradiction(night: Night, other: Night) -> str:
    """Between a run and one that seems to follow: a candidate has one run at a time, and a drive's hours only grow."""
    if night.finished and other.started < night.finished:
        return f"{night.id} and {other.id} overlap, and a candidate has one run at a time"
    common = night.power_on_h.keys() & other.power_on_h.keys()
    back = [serial for serial in night.power_on_h if serial in common and _went_back(serial, night, other)]
    if 2 * len(back) <= len(common):  # a drive whose own counter began anew says nothing of the clock
        return ""
    had, only = (in_digits(one.power_on_h[back[0]], 15) for one in (night, other))
    return f"drive {back[0]} had {had} h in {night.id} and only {only} h in {other.id}, which seems later"


def _went_back(serial: str, night: Night, other: Night) -> bool:
    return night.power_on_h[serial] > other.power_on_h[serial] + 1


def _other_task(night: Night, wanted: Night) -> str:
    names = ("scenario", "target", "scale", "duration")
    differing = [
        f"{name} {mine!r} instead of {theirs!r}"
        for name, mine, theirs in zip(names, night.task, wanted.task, strict=True)
        if mine != theirs
    ]
    return f"did something else: {', '.join(differing)}"


def _notes(nights: Sequence[Night]) -> Iterator[str]:
    """Changes of the requirement profile between runs that follow each other."""
    for before, after in pairwise(nights):
        was, now = ({row.id: row for row in night.rows} for night in (before, after))
        told = [f"{name} came" for name in sorted(now.keys() - was.keys())]
        told += [f"{name} went" for name in sorted(was.keys() - now.keys())]
        for name in sorted(was.keys() & now.keys()):
            one, two = was[name], now[name]
            if one.definition != two.definition:
                told.append(
                    f"{name} measures something else ({one.metric}, {one.statistic} \N{RIGHTWARDS ARROW} {two.metric}, {two.statistic})"
                )
            elif one.scaled_bound != two.scaled_bound or not same_unit(one.unit, two.unit):
                told.append(
                    f"{name}'s bound went from {in_digits(one.scaled_bound, 15)} to {in_digits(two.scaled_bound, 15)} {two.unit}"
                )
        if told:
            yield f"The requirement profile changed before {after.id}: {'; '.join(told)}."
