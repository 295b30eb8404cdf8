"""Each typed document of a bundle has a strict reader and a form as JSON; both are here."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from bench_model.base.errors import BenchError

Document = dict[str, Any]
Count = Annotated[int, Meta(ge=0)]
Ordinal = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Block = Annotated[int, Meta(ge=4096)]  # B


class Struct(msgspec.Struct, frozen=True):
    """A part of a document. A field that is not named here may stand in an older or newer bundle, and is not looked at."""


class Closed(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a document that every version of the bench wrote with these fields: any other one is refused, also on reading."""


Kind = TypeVar("Kind", bound=Struct)


def as_document(struct: Struct) -> Document:
    """The struct as it stands in JSON: lists for tuples, null for None."""
    found: Document = msgspec.to_builtins(struct)
    return found


AT = re.compile(r"(?P<problem>.*) - at `\$\.?(?P<field>.*)`")  # msgspec's place of an error


def read(document: object, kind: type[Kind], file: str) -> Kind:
    """The document as its type. Raises BenchError that names file, field and what was expected there."""
    try:
        return msgspec.convert(document, kind, strict=True)
    except msgspec.ValidationError as error:
        found = AT.fullmatch(str(error))
        place = f"{file}: {found['field']}" if found and found["field"] else file
        raise BenchError(f"{place}: {found['problem'] if found else error}") from None
