"""Adds what PDF/UA-1 asks for and WeasyPrint leaves out: the scope of table headers, figures' boxes in the page's own units, words for
links, and attachments as associated files.

Promise: only attributes of structure elements, annotations and file specifications are touched; the page's content is not.
"""

from __future__ import annotations

from typing import Any

import pydyf

POINTS_PER_PX = 0.75


def complete(document: Any, pdf: Any) -> None:
    """Completes the PDF: a finisher for WeasyPrint's write_pdf."""
    by_number = {found.number: found for found in pdf.objects if isinstance(found, pydyf.Dictionary)}
    pages = dict(zip(pdf.page_references, document.pages, strict=True))
    for element in list(by_number.values()):
        kind = element.get("S")
        if kind == "/TH":
            element["A"]["Scope"] = "/Column" if _in_head(element, by_number) else "/Row"
        elif kind == "/Figure" and "A" in element:
            _place(element, pages)
    for page in document.pages:
        _describe_links(page)
    _associate(pdf, [one for one in by_number.values() if one.get("Type") == "/Filespec"])


def _in_head(cell: Any, by_number: dict[int, Any]) -> bool:
    row = _parent(cell, by_number)
    return bool(_parent(row, by_number).get("S") == "/THead")


def _parent(element: Any, by_number: dict[int, Any]) -> Any:
    return by_number[int(bytes(element["P"]).split()[0])]


def _place(figure: Any, pages: dict[bytes, Any]) -> None:
    """Converts boxes: WeasyPrint gives CSS pixels from the top of the page; PDF counts points from its bottom (ISO 32000-1, 14.8.5.4.3)."""
    page = pages.get(figure["Pg"])
    if page is None:
        return
    left, top, right, bottom = (float(value) for value in figure["A"]["BBox"])
    corners = (left, page.height - bottom, right, page.height - top)
    figure["A"]["BBox"] = pydyf.Array(round(value * POINTS_PER_PX, 2) for value in corners)


def _describe_links(page: Any) -> None:
    """Gives each link an alternative description, its own words (ISO 14289-1, 7.18.5)."""
    for box in page._page_box.descendants():
        annotation = getattr(box, "link_annotation", None)
        if annotation is not None and box.element is not None:
            annotation["Contents"] = pydyf.String(" ".join("".join(box.element.itertext()).split()))


def _associate(pdf: Any, files: list[Any]) -> None:
    """Makes the attachments associated files of the whole document (ISO 32000-2, 14.13): data that the report was made of."""
    for one in files:
        one["AFRelationship"] = "/Data"
    if files:
        pdf.catalog["AF"] = pydyf.Array([one.reference for one in files])
