#!/usr/bin/env python3
"""Two builds of daqwriter judge the same damage alike: `same_verdicts.py OLD NEW [--damages N] [--seed S]`.

Makes a gapless record, a framed record and a streams run with OLD, damages copies of each by a seeded generator,
builds the inputs of the fuzzers' corpora as files, and lets both programs verify every one. Exit code, message and
JSON must be the same, apart from times. For whoever changes the verifiers without changing what they say.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

BLOCK = 4096
CORPUS = Path(__file__).parent / "fuzz" / "corpus"
RECORD = ["minidaq", "--links", "3", "--scale", "0.002", "--duration", "0.4", "--ring-size", "1MiB"]
RUN = ["--bytes", "2MiB", "--event-size", "16KiB", "--file-size", "256KiB", "--block-size", "64KiB"]


def make(program: Path, folder: Path) -> dict[str, Path]:
    """The intact originals."""
    sources = {
        "gapless": [*RECORD, "--target", str(folder / "gapless"), "--block-size", "64KiB"],
        "framed": [*RECORD, "--target", str(folder / "framed"), "--writers", "2", "--block-size", "64KiB"],
        "run": ["streams", "--target", str(folder / "run"), *RUN],
    }
    for arguments in sources.values():
        subprocess.run([program, *arguments, "--allow-memory-target"], check=True, capture_output=True)
    return {name: folder / name for name in sources}


def verdict(program: Path, target: Path, result: Path) -> tuple[int, str, object]:
    result.unlink(missing_ok=True)
    ended = subprocess.run(
        [program, "verify", "--target", target, "--json", result], capture_output=True, text=True, check=False
    )
    said = re.sub(r" in [0-9.e+-]+ s\n", " in T s\n", ended.stderr)
    document = json.loads(result.read_text()) if result.exists() else None
    for name in ("duration_s", "read_bytes_per_s"):
        if document:
            document[name] = None
    # The order of members counts too.
    return ended.returncode, said, json.dumps(document)


def damaged(data: bytearray, chance: random.Random) -> bytearray:
    """One damage of a kind that drives, file systems or people do."""

    def span(most: int, unit: int = 1) -> slice:
        size = min(chance.randint(1, most) * unit, len(data))
        begin = chance.randrange(max(1, (len(data) - size) // unit + 1)) * unit
        return slice(begin, begin + size)

    def flip() -> None:
        for _ in range(chance.choice((1, 1, 3, 50))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)

    def zeros() -> None:
        where = span(40, chance.choice((1, 512, BLOCK)))
        data[where] = bytes(len(data[where]))

    def noise() -> None:
        where = span(40, chance.choice((1, 512, BLOCK)))
        data[where] = chance.randbytes(len(data[where]))

    def copied() -> None:
        where, unit = span(20, chance.choice((512, BLOCK))), BLOCK
        to = chance.randrange(len(data) // unit + 1) * unit
        piece = data[where]
        data[to : to + len(piece)] = piece[: max(0, len(data) - to)]

    def inserted() -> None:
        at = chance.randrange(len(data))
        data[at:at] = data[span(20, 512)]

    def taken_out() -> None:
        del data[span(20, chance.choice((1, 512, BLOCK)))]

    def cut() -> None:
        del data[chance.randrange(len(data)) :]

    def longer() -> None:
        data.extend(chance.choice((bytes(BLOCK), chance.randbytes(777), data[-2 * BLOCK :])))

    def swapped() -> None:
        one, other = sorted(chance.sample(range(len(data) // BLOCK), 2))
        a, b = slice(one * BLOCK, one * BLOCK + BLOCK), slice(other * BLOCK, other * BLOCK + BLOCK)
        data[a], data[b] = data[b], data[a]

    kinds: list[Callable[[], None]] = [flip, zeros, noise, copied, inserted, taken_out, cut, longer]
    if len(data) >= 3 * BLOCK:
        kinds.append(swapped)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if data:
            chance.choice(kinds)()
    return data


def damage_record(original: Path, target: Path, chance: random.Random) -> None:
    target.write_bytes(damaged(bytearray(original.read_bytes()), chance))


def damage_run(original: Path, target: Path, chance: random.Random) -> None:
    shutil.copytree(original, target)
    files = sorted(target.iterdir())
    how = chance.randrange(10)
    if how == 0:
        chance.choice(files).unlink()
    elif how == 1:
        one, other = chance.sample(files[:-1], 2)
        other.write_bytes(one.read_bytes())
    elif how == 2:
        number = chance.randrange(40, 60)
        (target / f"events.{chance.randrange(6)}.{number}.events").write_bytes(chance.choice(files).read_bytes())
    elif how == 3:
        manifest = target / "manifest.jsonl"
        manifest.write_bytes(damaged(bytearray(manifest.read_bytes()), chance))
    else:
        for path in chance.sample(files[:-1], chance.choice((1, 1, 2))):
            path.write_bytes(damaged(bytearray(path.read_bytes()), chance))


def sealed(content: bytes, at: int) -> bytes:
    block = bytearray(content.ljust(BLOCK, b"\0"))
    block[at : at + 4] = bytes(4)
    block[at : at + 4] = zlib.crc32(block).to_bytes(4, "little")
    return bytes(block)


def with_sealed_frames(data: bytes, magic: bytes) -> bytes:
    made = bytearray(data)
    at = made.find(magic)
    while 0 <= at <= len(made) - 64:
        made[at + 4 : at + 8] = bytes(4)
        made[at + 4 : at + 8] = zlib.crc32(made[at : at + 64]).to_bytes(4, "little")
        at = made.find(magic, at + 64)
    return bytes(made)


def corpus(folder: Path, run: Path) -> Iterator[tuple[str, Path]]:
    """The inputs of the fuzzers as files: what they seal in memory is sealed here too."""
    for path in sorted(CORPUS.glob("*/*")):
        data, name = path.read_bytes(), f"{path.parent.name}-{path.name}"
        target = folder / name
        if path.parent.name in ("record", "record_header", "trailer"):
            if path.parent.name == "trailer":
                header, trailer, rest = b"", data[:BLOCK], b""
            else:
                header, trailer, rest = data[:128], data[128:320], with_sealed_frames(data[320:], b"DNSC")
            rest += bytes(-len(rest) % BLOCK)
            target.write_bytes(sealed(header, 20) + rest + sealed(trailer, 12))
        elif path.parent.name == "manifest":
            shutil.copytree(run, target)
            (target / "manifest.jsonl").write_bytes(data)
        elif path.parent.name == "events":
            shutil.copytree(run, target)
            (target / "events.0.0.events").write_bytes(with_sealed_frames(data[2:], b"DQEV"))
        else:
            continue
        yield name, target


def cases(originals: dict[str, Path], folder: Path, damages: int, seed: int) -> Iterator[tuple[str, Path]]:
    for name, original in originals.items():
        yield name, original
    yield from corpus(folder, originals["run"])
    for number in range(damages):
        for name, original in originals.items():
            target = folder / f"{name}-{number}"
            chance = random.Random(f"{seed} {name} {number}")
            (damage_run if name == "run" else damage_record)(original, target, chance)
            yield target.name, target


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--damages", type=int, default=300, help="of each original")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    codes: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    different = 0
    with tempfile.TemporaryDirectory(prefix="verdicts-", dir=Path.cwd()) as name:
        folder = Path(name)
        for case, target in cases(make(asked.old, folder), folder, asked.damages, asked.seed):
            old, new = (verdict(program, target, folder / "result") for program in (asked.old, asked.new))
            codes[old[0]] += 1
            document = json.loads(str(old[2]))
            kinds.update(fault["kind"] for fault in (document or {}).get("faults", []))
            if old != new:
                different += 1
                print(f"{case}: judged differently\n  {old}\n  {new}")
            if target.name in ("gapless", "framed", "run"):
                continue
            shutil.rmtree(target) if target.is_dir() else target.unlink()
    print(f"{codes.total()} targets, {different} judged differently; exit codes {dict(codes)}; faults {dict(kinds)}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
