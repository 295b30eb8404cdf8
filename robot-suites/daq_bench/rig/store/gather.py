"""Copies bundles into a store, and out of it. Each seal is checked before the copy and on what arrived; a copy that was cut short goes on.

A bundle that the store has with other content is refused: nobody can tell here which is the run's own."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.bundle.files import (
    DOCUMENT_BYTES_MAX,
    ENTRIES_MAX,
    SPOOL_BYTES_MAX,
    open_file,
    plain_file,
    read_bytes,
)
from daq_bench.bench_model.bundle.provenance import (
    MANIFEST,
    NO_EVIDENCE,
    REPORTS,
    REPORTS_MANIFEST,
    SIGNATURE_SUFFIX,
    digest_in,
    read_manifest,
)
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.checking.agreement import folder_problems
from daq_bench.rig.checking.sealing import altered_evidence, altered_reports
from daq_bench.rig.store.place import RUN_ID, WORK, Store

COPIED, THERE, REFUSED, UNSEALED = "copied", "already there", "refused", "not sealed: its run has not ended"
# These errors are the place's own: the next bundle would meet them too.
NO_STORE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOTDIR}
SIDE = (f"{MANIFEST}{SIGNATURE_SUFFIX}", REPORTS_MANIFEST, f"{REPORTS_MANIFEST}{SIGNATURE_SUFFIX}")


@dataclass(frozen=True)
class Gathered:
    """The end of one bundle's way; `reason` says why it was refused."""

    run: str
    what: str
    reason: str = ""


def gather(runs: Path, store: Store, whole: bool, say: Callable[[Gathered], None]) -> list[Gathered]:
    """Copies every sealed bundle of `runs`. `whole`: those that are there already are read back and hashed too."""
    return _each(
        [path.name for path in _bundles(runs)], store.address, runs, lambda run: _put(runs / run, store, whole), say
    )


def fetch(store: Store, runs: Path, say: Callable[[Gathered], None]) -> list[Gathered]:
    """Copies every bundle of the store into the folder `runs`."""
    runs.mkdir(parents=True, exist_ok=True)
    return _each(store.runs(), str(runs), None, lambda run: _get(store, runs, run), say)


def _each(
    names: list[str], place: str, source: Path | None, one: Callable[[str], str], say: Callable[[Gathered], None]
) -> list[Gathered]:
    """`place`: where the copies go. `source`: the folder of the bundles, where it is one: an unreadable one leaves the others."""
    found = []
    for run in names:
        try:
            found.append(Gathered(run, one(run)))
        except BenchError as error:
            found.append(Gathered(run, REFUSED, str(error)))
        except OSError as error:
            if error.errno in NO_STORE:
                raise BenchError(
                    f"{place}: {in_words(error)}, at {run}. Mend it and gather again: what is there already stays"
                ) from None
            if source is None or not Path(str(error.filename)).is_relative_to(source / run):
                raise  # a line that went dead: the command ends, and goes on when it is given again
            found.append(Gathered(run, REFUSED, f"{run} cannot be read ({in_words(error)})"))
        say(found[-1])
    return found


def _bundles(runs: Path) -> list[Path]:
    if not runs.is_dir():
        raise BenchError(f"{runs} is no folder. Name the folder of run bundles with {typed('--runs')}")
    return sorted(
        path
        for path in runs.iterdir()
        if not path.name.startswith(".")
        and path.is_dir()
        and not path.is_symlink()
        and any(os.path.lexists(path / name) for name in ("run.json", MANIFEST))
    )


def _put(bundle: Path, store: Store, whole: bool) -> str:
    run = bundle.name
    if not RUN_ID.fullmatch(run):
        raise RefusedError(
            f"{bundle.parent} holds a bundle in the folder {run!r}, which is no run's name. Give it its run's name again"
        )
    if plain_file(bundle, MANIFEST) is None:
        return UNSEALED
    _require_intact(bundle)
    _require_named(bundle)
    manifest = read_bytes(bundle, MANIFEST)
    wanted = _listed(bundle)
    if store.holds(run):
        _require_same(store, run, manifest, wanted, whole)
        return THERE
    mine = hashlib.sha256(manifest).hexdigest()
    claim = store.claim(run, f"{mine} {socket.gethostname()}")
    if claim.split(" ")[0] != mine:
        raise RefusedError(
            f"{run} is being gathered with other content ({claim}). When nobody is at it, remove {store.address}/{WORK}/{run}.claim "
            f"and {store.address}/{run}"
        )
    work = store.work(run)
    for name, digest in {**wanted, MANIFEST: mine}.items():  # the manifest last
        if store.digest(work, name) != digest:
            with open_file(bundle, name, SPOOL_BYTES_MAX) as source:
                store.put(work, name, source)
            _require(store, work, name, digest)
    store.finish(run)
    return COPIED


def _require_intact(bundle: Path) -> None:
    changes = [*altered_evidence(bundle), *(altered_reports(bundle) or [])]
    if changes:
        raise RefusedError(
            f"{bundle.name} was altered since it was sealed ({'; '.join(one.text for one in changes[:3])})"
        )


def _require_named(bundle: Path) -> None:
    if problems := folder_problems(bundle, Bundle.open(bundle).run):
        raise RefusedError(f"{bundle}: {problems[0]}. Give it its run's name again")


def _listed(bundle: Path) -> dict[str, str]:
    """Digest by name of all that travels but the manifest: evidence, reports, seals and signatures."""
    found = read_manifest(bundle / MANIFEST)
    if plain_file(bundle, REPORTS_MANIFEST) is not None:
        found |= {name: digest for name, digest in read_manifest(bundle / REPORTS_MANIFEST).items() if name != MANIFEST}
    return found | {name: digest_in(bundle, name) for name in SIDE if plain_file(bundle, name) is not None}


def _require_same(store: Store, run: str, manifest: bytes, wanted: Mapping[str, str], whole: bool) -> None:
    if store.read(run, MANIFEST) != manifest:
        raise RefusedError(
            f"{store.address} holds {run} with other content. `daq-bench check-bundle` tells which is the run's own: remove the other"
        )
    evidence = {name: digest for name, digest in wanted.items() if name in _names(manifest)}
    there = store.sizes(run)
    missing = [name for name in evidence if name not in there]
    altered = [name for name in evidence if whole and name in there and store.digest(run, name) != evidence[name]]
    if missing or altered:
        raise RefusedError(
            f"{run} was altered in {store.address}: {', '.join([*missing, *altered][:3])}. Remove it there, and gather again"
        )


def _names(manifest: bytes) -> set[str]:
    return {
        line.removeprefix("\\").partition("  ")[2] for line in manifest.decode("utf-8", "surrogateescape").splitlines()
    }


def _require(store: Store, run: str, name: str, digest: str) -> None:
    if (found := store.digest(run, name)) != digest:
        raise RefusedError(
            f"{run}/{name} did not arrive unchanged in {store.address} (SHA-256 {found}, not {digest}). Gather again"
        )


def _get(store: Store, runs: Path, run: str) -> str:
    target, work = runs / run, runs / WORK / run
    if target.exists():
        if not (target / MANIFEST).is_file() or read_bytes(target, MANIFEST) != store.read(run, MANIFEST):
            raise RefusedError(f"{target} is another bundle than that of {store.address}")
        return THERE
    known, sizes = _manifest_of(store, run), store.sizes(run)
    wanted = _wanted(store, run, known, sizes)
    work.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        file = work / name
        if name in known and plain_file(work, name) and digest_in(work, name) == known[name]:
            continue  # an earlier copy that was cut short brought it
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            store.get(run, name, stream, sizes[name])
    if plain_file(work, MANIFEST) is None:
        raise RefusedError(f"{run} was removed from {store.address} while it was copied")
    try:
        _require_intact(work)
    except BenchError:
        shutil.rmtree(work)
        raise
    work.rename(target)
    return COPIED


def _wanted(store: Store, run: str, known: Mapping[str, str], sizes: Mapping[str, int]) -> list[str]:
    """Lists what is copied, the manifest last: files that a manifest lists, and the seals. Raises RefusedError, before anything is copied,
    for a file that no manifest lists, that is no plain one, that is not there, or that is larger than a bundle's can be."""
    beside = set(REPORTS) | set(NO_EVIDENCE) | {*SIDE, MANIFEST}
    for name in (*known, *sizes):
        _require_inside(name, run)
    if strangers := sorted(sizes.keys() - known.keys() - beside):
        raise RefusedError(
            f"{run} holds {strangers[0][:80]!r} in {store.address}, which its manifest does not list. Remove it there"
        )
    if missing := sorted(known.keys() - sizes.keys()):
        raise RefusedError(
            f"{run} lacks {missing[0][:80]!r} in {store.address}, which its manifest lists. Gather it again"
        )
    if len(sizes) > ENTRIES_MAX:
        raise RefusedError(
            f"{run} holds {len(sizes)} files in {store.address}, more than a bundle can have ({ENTRIES_MAX})"
        )
    for name, size in sizes.items():
        most = SPOOL_BYTES_MAX if name in known or name in REPORTS else DOCUMENT_BYTES_MAX
        if size > most:
            raise RefusedError(f"{run}/{name} has {size} B in {store.address}, more than {most} B. Leave the run out")
        if not store.is_plain(run, name):
            raise RefusedError(f"{run}/{name} is a link or special file in {store.address}. Remove it there")
    return sorted(sizes, key=lambda one: one == MANIFEST)


def _manifest_of(store: Store, run: str) -> dict[str, str]:
    """The digests that the store's bundle lists, for what need not be copied again."""
    with TemporaryDirectory() as folder:
        (Path(folder) / MANIFEST).write_bytes(store.read(run, MANIFEST))
        return read_manifest(Path(folder) / MANIFEST)


def _require_inside(name: str, run: str) -> None:
    if not {"", ".", ".."}.isdisjoint(name.split("/")) or "\0" in name:
        raise RefusedError(f"{run} holds {name[:80]!r}, which names no file inside of a bundle")


def words(found: list[Gathered]) -> Iterator[str]:
    """Says how many of each end, in a fixed order."""
    for what in (COPIED, THERE, UNSEALED, REFUSED):
        if number := sum(one.what == what for one in found):
            yield f"{number} {what}"
