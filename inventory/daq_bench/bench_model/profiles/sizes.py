"""Sizes in the users' YAML, turned into bytes by the name of their key."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.profiles.yaml_source import YamlSource
from daq_bench.candidate_kit.sizes import parse_size

SIZE_KEYS = ("_size", "_sizes", "_budget")  # whoever reads a scenario knows by the name that this is an amount of data
BLOCK_KEYS = ("block_size", "block_sizes")
LEFT_OUT = "left-out"  # of a demanded load: the scenario does not have the parameter


def sizes_in_bytes(source: YamlSource, at: tuple[str | int, ...], node: Any) -> Any:
    """The node with every size in bytes; those of blocks must be multiples of 4 KiB, a list of sizes ascending."""
    if isinstance(node, list):
        return [sizes_in_bytes(source, (*at, index), one) for index, one in enumerate(node)]
    if not isinstance(node, dict):
        return node
    return {
        key: _sizes(source, (*at, key), value) if key.endswith(SIZE_KEYS) else sizes_in_bytes(source, (*at, key), value)
        for key, value in node.items()
    }


def _sizes(source: YamlSource, at: tuple[str | int, ...], value: Any) -> Any:
    if value == LEFT_OUT:
        return value
    try:
        done = [parse_size(size) for size in value] if isinstance(value, list) else parse_size(value)
    except ValueError as error:
        raise source.error(at, str(error), "Correct it") from None
    if isinstance(done, list) and done != sorted(set(done)):
        raise source.error(at, "is not ascending", "Sort it, each size once")
    for size in done if isinstance(done, list) else [done]:
        if at[-1] in BLOCK_KEYS and size % 4096:
            raise source.error(at, f"block size {size} B is no multiple of 4 KiB", "O_DIRECT needs one")
    return done
