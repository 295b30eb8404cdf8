"""Each typed document of a bundle has a strict reader and a form as JSON; both are here."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from bench_model.base.errors import BenchError

Document = dict[str, Any]


class Struct(msgspec.Struct, frozen=True):
    """A part of a document. A field that is not named here may stand in an older or newer bundle, and is not looked at."""


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
