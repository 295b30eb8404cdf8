"""Each typed document of a bundle has a strict reader and a form as JSON; both are here."""

from __future__ import annotations

import math
import re
import threading
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from daq_bench.bench_model.base.errors import BenchError

Document = dict[str, Any]
Count = Annotated[int, Meta(ge=0)]
Ordinal = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Block = Annotated[int, Meta(ge=4096)]  # B
Item = TypeVar("Item")
Pair = Annotated[list[Item], Meta(min_length=2, max_length=2)]
Utc = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$")]
NO_FLOATS = frozenset((bool, int, str, type(None)))
DEPTH_MAX = 64  # deeper than anything that the bench writes
SHOWN_MAX = 60  # characters of a value in a complaint
PROBLEM_MAX = 300  # and of the problem, which may quote a field that somebody made up
SCHEMA_VERSION = 1  # of every typed document that has one; a test holds the types to it
VERSION = "schema_version"
REMEDY = "The file is damaged, altered, or of another version of the bench"


class Struct(msgspec.Struct, frozen=True):
    """A part of a document. A field that is not named here may stand in an older or newer bundle, and is not looked at."""


class Closed(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a document that every version of the bench wrote with these fields: any other one is refused, also on reading."""


Kind = TypeVar("Kind", bound=Struct)
Decoded = TypeVar("Decoded")


def as_document(struct: Struct) -> Document:
    """The struct as it stands in JSON: lists for tuples, null for None."""
    found: Document = _plain(msgspec.to_builtins(struct, enc_hook=_number))
    return found


def _number(value: object) -> float:
    """A float of a kind of its own, such as NumPy's, as json writes it."""
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"{value!r} stands in no JSON document")


def checked(struct: Struct) -> Document:
    """The same of a document that the bench has made. Raises BenchError for a field that is not of its type: a fault of the bench."""
    found, name = as_document(struct), f"the {type(struct).__name__} that the bench made"
    try:
        read(found, type(struct), name)
    except BenchError as error:
        raise BenchError(str(error).replace(REMEDY, "Report it as a fault of the bench")) from None
    return found


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _plain(one) for key, one in node.items()}
    return [_plain(one) for one in node] if isinstance(node, list | tuple) else node


def moment(utc: str) -> datetime:
    """A document's time; one without a zone is UTC. Raises ValueError for what no calendar has."""
    found = datetime.fromisoformat(utc)
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:  # a zone that leads out of the calendar
        raise ValueError(f"{utc!r} is no time that a calendar has") from None


def utc_text(moment: datetime) -> str:
    """The same in a document, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# msgspec 0.22 learns a type when it is first asked for one. Two threads that asked at once, as for candidates whose runs end together,
# crashed the whole process in half of all trials.
_one_at_a_time = threading.RLock()
AT = re.compile(r"(?P<problem>.*) - at `\$\.?(?P<field>.*)`", re.DOTALL)  # msgspec's place of an error
STEP = re.compile(r"\[(\d+|\.\.\.)\]|([^.\[\]]+)")


def decoder(kind: type[Decoded]) -> msgspec.json.Decoder[Decoded]:
    """Decodes texts that this bench wrote itself."""
    with _one_at_a_time:
        return msgspec.json.Decoder(kind)


def read(document: object, kind: type[Kind], file: str) -> Kind:
    """The document as its type. Raises BenchError that names file, field, value, what was expected there, and the remedy."""
    if odd := not_finite(document, file):
        raise BenchError(f"{odd}. {REMEDY}")
    try:
        with _one_at_a_time:
            return msgspec.convert(document, kind, strict=True)
    except msgspec.ValidationError as error:
        found = AT.fullmatch(str(error))
        at = found["field"] if found else ""
        # A newer document may have other fields, too, which msgspec may meet first.
        newer = newer_bench(_value_at(document, VERSION)) or (
            at.endswith(f".{VERSION}") and newer_bench(_value_at(document, at))
        )
        raise BenchError(f"{file}: {newer or f'{complaint(error, document)}. {REMEDY}'}") from None


def newer_bench(version: object) -> str:
    """Says that a newer bench wrote a document of this `schema_version`, and what to do; empty where the number does not say so."""
    if not isinstance(version, int) or isinstance(version, bool) or version <= SCHEMA_VERSION:
        return ""
    return (
        f"a newer bench wrote it ({VERSION} {version}; this bench reads up to {SCHEMA_VERSION}). Update this bench (in a checkout: "
        "`git pull`, then `make setup`), or use the one that wrote it"
    )


def require_known(document: object, file: str) -> None:
    """Raises BenchError for a document of a newer bench, before it is compared with one of this bench."""
    if newer := newer_bench(_value_at(document, VERSION)):
        raise BenchError(f"{file}: {newer}")


def complaint(error: msgspec.ValidationError, document: object) -> str:
    """`scenario.scale: Expected `float`, got `str`: 'fast'`: the field, what was expected there, and what the document has."""
    found = AT.fullmatch(str(error))
    field, problem = (found["field"], found["problem"]) if found else ("", str(error))
    value, problem = _value_at(document, field), problem[:PROBLEM_MAX]
    shown = "" if isinstance(value, dict | list) or "unknown field" in problem else f": {value!r:.{SHOWN_MAX}}"
    return f"{field}: {problem}{shown}" if field else f"{problem}{shown}"


def _value_at(node: Any, field: str) -> Any:
    """The value that msgspec complains of; the nearest list or object where it names no single place."""
    for place, key in STEP.findall(field):
        if place == "..." or (place and not isinstance(node, list)) or (key and not isinstance(node, dict)):
            return {}
        node = node[int(place)] if place else node.get(key, {})
    return node


def not_finite(node: Any, at: str, depth: int = 0) -> str:
    """Names the first number that is not finite, and a document that is nested beyond anything that the bench writes; empty for none."""
    if depth > DEPTH_MAX:
        return f"{at} is nested more than {DEPTH_MAX} levels deep"
    if isinstance(node, float):
        return "" if math.isfinite(node) else f"{at} is {node}: no finite number"
    if isinstance(node, dict):
        odd = ((f"{at}: {key}", one) for key, one in node.items() if not _is_harmless(one))
    elif isinstance(node, list | tuple):  # a document that was just made may hold tuples
        odd = ((f"{at}[{place}]", one) for place, one in enumerate(node) if not _is_harmless(one))
    else:
        return ""
    return next(filter(None, (not_finite(one, where, depth + 1) for where, one in odd)), "")


def _is_harmless(one: object) -> bool:
    """Most entries are: a place is put into words for the others alone."""
    kind = type(one)
    return math.isfinite(one) if kind is float else kind in NO_FLOATS  # type: ignore[arg-type]
