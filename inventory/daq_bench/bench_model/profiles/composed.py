"""Profiles that take from others: a scenario `extends:` another one, a requirement profile has an `include:`.

The other one is looked for in the same folder, then among those that the bench ships.

An error names the file and the line where the text in question stands. A run bundle holds the profile put together
(rig.run.record.copy_profiles), so that nothing has to be found beside it again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.profiles.yaml_source import SCHEMAS, Key, YamlSource, check, load_schema, read_yaml

Kind = Literal["scenario", "requirement"]

SHIPPED: dict[Kind, Path] = {"scenario": SCHEMAS.parent / "scenarios", "requirement": SCHEMAS.parent / "requirements"}

CHAIN_MAX = 4  # files that a scenario is made of; who reads it has to open each
ID = re.compile(r"[a-z0-9][a-z0-9-]*")
BY_ID = "Name a profile of the same folder, or a shipped one, by its id: no path, no .yml"


@dataclass(frozen=True)
class Scenarios(YamlSource):
    """A scenario with what its bases say: `data` is the whole, `layers` its own file, its base, the base's base."""

    layers: tuple[YamlSource, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(layer.file for layer in self.layers)

    def line_of(self, path: Sequence[Key]) -> int:
        return self._layer(path).line_of(path)

    def error(self, path: Sequence[Key], problem: str, remedy: str, more: int = 0) -> ProfileError:
        return self._layer(path).error(path, problem, remedy, more)

    def _layer(self, path: Sequence[Key]) -> YamlSource:
        """The first file that has the field; else the first of those that have most of the way to it."""
        return max(self.layers, key=lambda layer: _reaches(layer.data, path))


@dataclass(frozen=True)
class Requirements(YamlSource):
    """A requirement profile with what it includes. `own`: its file. `origins`: file and index of each requirement of `data`."""

    own: YamlSource
    origins: tuple[tuple[YamlSource, int], ...]
    places: tuple[tuple[Key, ...], ...]  # in the own file: an id of `include`, or the requirement itself

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.own.file, *(source.file for source, _ in self.origins))))

    def line_of(self, path: Sequence[Key]) -> int:
        source, there = self._origin(path)
        return source.line_of(there)

    def error(self, path: Sequence[Key], problem: str, remedy: str, more: int = 0) -> ProfileError:
        source, there = self._origin(path)
        return source.error(there, problem, remedy, more)

    def refused(self, index: int, field: str, problem: str, remedy: str) -> ProfileError:
        """An error for a requirement that is right where it stands, but not in this profile."""
        place = self.places[index]
        return self.own.error((*place, field) if place[0] == "requirements" else place, problem, remedy)

    def _origin(self, path: Sequence[Key]) -> tuple[YamlSource, Sequence[Key]]:
        if len(path) > 1 and path[0] == "requirements" and isinstance(path[1], int) and path[1] < len(self.origins):
            source, index = self.origins[path[1]]
            return source, ("requirements", index, *path[2:])
        return self.own, path


def read_scenario(file: Path) -> Scenarios:
    """The scenario in `file`, with what it takes from its bases. Raises ProfileError."""
    layers = [read_yaml(file)]
    while (base := _base_of(layers)) is not None:
        layers.append(base)
    data: Any = layers[-1].data
    for layer in reversed(layers[:-1]):
        data = _merged(layer, (), data, layer.data)
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != "extends"}
    if len(layers) > 1 and "title" not in layers[0].data:
        raise layers[0].error((), "has no title of its own", "Say in a line how it differs from what it extends")
    return Scenarios(file, data if len(layers) > 1 else layers[0].data, tuple(layers))


def read_requirements(file: Path) -> Requirements:
    """The requirement profile in `file`: first what it includes, then its own. Raises ProfileError."""
    own = read_yaml(file)
    stated = own.data.get("requirements", []) if isinstance(own.data, dict) else []
    if not isinstance(own.data, dict) or "include" not in own.data or not isinstance(stated, list):
        return Requirements(file, own.data, own, (), tuple(("requirements", n) for n in range(len(stated))))
    check(own, load_schema("requirement")["properties"]["include"], ("include",))
    found: list[tuple[YamlSource, int, tuple[Key, ...]]] = []
    for index, entry in enumerate(own.data["include"]):
        other = _named(own, SHIPPED["requirement"], ("include", index, "from"), entry["from"])
        for number, identifier in enumerate(entry["ids"]):
            at = ("include", index, "ids", number)
            found.append((other, _index_of(own, at, other, identifier), at))
    found += [(own, index, ("requirements", index)) for index in range(len(stated))]
    data = {key: value for key, value in own.data.items() if key != "include"}
    data["requirements"] = [source.data["requirements"][index] for source, index, _ in found]
    origins = tuple((source, index) for source, index, _ in found)
    return Requirements(file, data, own, origins, tuple(place for *_, place in found))


def read_profile(kind: Kind, file: Path) -> Scenarios | Requirements:
    return read_scenario(file) if kind == "scenario" else read_requirements(file)


def check_alone(source: Scenarios | Requirements) -> None:
    """Raises ProfileError for a stored profile that needs another file: a bundle holds it whole, and is judged by it alone."""
    for key in ("extends", "include"):
        own = source.layers[0] if isinstance(source, Scenarios) else source.own
        if isinstance(own.data, dict) and key in own.data:
            raise own.error((key,), "stands in a stored profile, which must be whole", "Bring back the run's own copy")


def _base_of(layers: Sequence[YamlSource]) -> YamlSource | None:
    last = layers[-1]
    if not isinstance(last.data, dict) or "extends" not in last.data:
        return None
    base = _named(last, SHIPPED["scenario"], ("extends",), last.data["extends"])
    names, files = [layer.file.stem for layer in layers], [layer.file.resolve() for layer in layers]
    if base.file.resolve() in files:
        circle = " -> ".join((*names[files.index(base.file.resolve()) :], base.file.stem))
        raise last.error(("extends",), f"closes a circle: {circle}", "Let one of them stand alone")
    if len(layers) == CHAIN_MAX:
        chain = " -> ".join((*names, base.file.stem))
        raise last.error(
            ("extends",), f"makes a chain of more than {CHAIN_MAX} files: {chain}", "Extend an earlier one"
        )
    return base


def _named(source: YamlSource, shipped: Path, at: tuple[Key, ...], name: object) -> YamlSource:
    """The profile `name` beside `source`, else the one that the bench ships."""
    if not isinstance(name, str) or not ID.fullmatch(name):
        raise source.error(at, f"{name!r} is no id of a profile", BY_ID)
    if name == source.file.stem:
        raise source.error(at, f"{name!r} is this file itself", "Name another profile")
    folders = (source.file.parent, shipped)
    file = next((one for folder in folders if (one := folder / f"{name}.yml").is_file()), None)
    if file is None:
        known = sorted({one.stem for folder in folders for one in folder.glob("*.yml")} - {source.file.stem})
        problem = f"there is no profile {name!r}, neither in {source.file.parent} nor in {shipped}"
        raise source.error(at, problem, nearest(name, known, f"daq-bench list {shipped.name}"))
    found = read_yaml(file)
    if not isinstance(found.data, dict):
        raise found.error((), "holds no fields", f"Write a profile into it: {source.file.name} takes from it")
    return found


def _merged(layer: YamlSource, at: tuple[Key, ...], base: Any, own: Any) -> Any:
    """`own` over `base`: maps field by field, anything else whole; `null` leaves out what the base has."""
    if not isinstance(own, dict):
        return own
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in own.items():
        if value is not None:
            merged[key] = _merged(layer, (*at, key), merged.get(key), value)
        elif key in merged:
            del merged[key]
        else:
            raise layer.error((*at, key), f"leaves out {key!r}, which the base does not have", "Correct or remove it")
    return merged


def _index_of(own: YamlSource, at: tuple[Key, ...], other: YamlSource, identifier: str) -> int:
    """Says where `other` itself writes the requirement: what it includes is named where it stands, so that no chain has to be followed."""
    entries = other.data.get("requirements", [])
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries] if _is_list(entries) else []
    if ids.count(identifier) > 1:
        raise own.error(at, f"{identifier!r} stands twice in {other.file.name}", "Number them apart there")
    if identifier in ids:
        return ids.index(identifier)
    for entry in other.data["include"] if _is_list(other.data.get("include")) else []:
        if isinstance(entry, dict) and _is_list(entry.get("ids")) and identifier in entry["ids"]:
            origin = f"Take it from {entry.get('from')!r}, where it is written"
            raise own.error(at, f"{other.file.name} only includes {identifier!r} itself", origin)
    raise own.error(at, f"{other.file.name} has no requirement {identifier!r}", nearest(identifier, filter(None, ids)))


def _is_list(node: object) -> bool:
    return isinstance(node, list)


def _reaches(node: Any, path: Sequence[Key]) -> int:
    """Says how many steps of `path` the document can go."""
    for steps, key in enumerate(path):
        inside = key in node if isinstance(node, dict) else isinstance(key, int) and _is_list(node) and key < len(node)
        if not inside:
            return steps
        node = node[key]
    return len(path)
