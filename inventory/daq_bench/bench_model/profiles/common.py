"""Steps that each profile's reader takes."""

from __future__ import annotations

from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from daq_bench.bench_model.profiles.yaml_source import YamlSource


def plain(node: Any) -> Any:
    """The YAML node as plain dicts, lists and scalars, ready for JSON."""
    if isinstance(node, CommentedMap | dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq | list):
        return [plain(value) for value in node]
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def check_id(source: YamlSource, identifier: str) -> None:
    if identifier != source.file.stem:
        raise source.error(("id",), f"id {identifier!r} differs from the file's name", f"Write id: {source.file.stem}")
