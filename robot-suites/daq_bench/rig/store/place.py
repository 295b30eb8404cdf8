"""A store of bundles: a folder or a bucket, whatever fsspec opens. `<store>/<run-id>/` is a bundle, `<store>/.gathering/` work under way.

Promise: in a folder a bundle appears under its name when it is whole. In a bucket, which renames nothing, its manifest appears last:
without one it is a copy under way, and counts nowhere."""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.bundle.files import DOCUMENT_BYTES_MAX
from daq_bench.bench_model.bundle.provenance import MANIFEST

WORK = ".gathering"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
CLAIM_BYTES_MAX = 4096
BLOCK_BYTES = 1 << 20


class Store:
    """At `address`: a folder, or a URL such as s3://bucket/runs. Rights to a bucket come from its client's own environment."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._fs, self._root = _opened(address)

    def runs(self) -> list[str]:
        """The bundles in the store that are whole, by name."""
        return sorted(
            name
            for path in self._listed(self._root)
            if RUN_ID.fullmatch(name := path.rsplit("/", 1)[-1]) and self.holds(name)
        )

    def holds(self, run: str, name: str = MANIFEST) -> bool:
        return bool(self._fs.exists(self._path(run, name)))

    def sizes(self, run: str) -> dict[str, int]:
        """Bytes of each file of the bundle, by name."""
        prefix = f"{self._root}/{run}/"
        found = self._fs.find(prefix, detail=True)
        return {path[len(prefix) :]: int(about["size"]) for path, about in found.items()}

    def read(self, run: str, name: str) -> bytes:
        with self._fs.open(self._path(run, name), "rb") as stream:
            content: bytes = stream.read(DOCUMENT_BYTES_MAX + 1)
        if len(content) > DOCUMENT_BYTES_MAX:
            raise BenchError(
                f"{self.address}/{run}/{name}: has more than {DOCUMENT_BYTES_MAX} bytes; leave the run out"
            )
        return content

    def digest(self, run: str, name: str) -> str | None:
        """SHA-256 of what the store holds, read back; None where it holds nothing of that name."""
        try:
            with self._fs.open(self._path(run, name), "rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            return None

    def work(self, run: str) -> str:
        """Says where the bundle is put together: the `run` of `put` and `digest` until it is whole."""
        return f"{WORK}/{run}" if self._is_folder else run

    def finish(self, run: str) -> None:
        """Gives a whole bundle its name. Raises RefusedError where another came first."""
        if self._is_folder:
            try:
                Path(self._path(WORK, run)).rename(self._path("", run))
            except OSError as error:
                raise RefusedError(
                    f"{run} cannot be put into {self.address} ({error.strerror}). Gather again"
                ) from None
        self._fs.rm_file(self._path(WORK, f"{run}.claim"))

    def put(self, run: str, name: str, source: BinaryIO) -> None:
        """The file under its name, whole or not at all."""
        path = self._path(run, name)
        if not self._is_folder:  # an object appears when its upload has ended
            with self._fs.open(path, "wb") as stream:
                shutil.copyfileobj(source, stream)
            return
        part = Path(self._root) / WORK / f".{Path(run).name}.{socket.gethostname()}.part"
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as stream:
            shutil.copyfileobj(source, stream)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        part.replace(path)

    def is_plain(self, run: str, name: str) -> bool:
        """Says whether the name leads to a regular file without a link on its way; a bucket knows no other."""
        if not self._is_folder:
            return True
        place = Path(self._path(run, ""))
        for part in ("", *name.split("/")):
            place = place / part
            if place.is_symlink():
                return False
        return place.is_file()

    def get(self, run: str, name: str, target: BinaryIO, most: int) -> None:
        """Copies the file. Raises RefusedError for one that has grown beyond `most` bytes since it was listed."""
        left = most
        with self._fs.open(self._path(run, name), "rb") as stream:
            while block := stream.read(min(BLOCK_BYTES, left + 1)):
                if len(block) > left:
                    raise RefusedError(f"{self.address}/{run}/{name} grew while it was copied. Fetch again")
                left -= len(block)
                target.write(block)

    def claim(self, run: str, text: str) -> str:
        """Returns what the run's claim says: `text` when nobody had claimed it before."""
        path = self._path(WORK, f"{run}.claim")
        with suppress(FileExistsError):
            if self._is_folder:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._fs.pipe_file(path, text.encode(), mode="create")
            return text
        with self._fs.open(path, "rb") as stream:
            return str(stream.read(CLAIM_BYTES_MAX).decode("utf-8", "replace"))

    @property
    def _is_folder(self) -> bool:
        return "file" in self._fs.protocol

    def _path(self, run: str, name: str) -> str:
        return f"{self._root}/{run}/{name}" if run else f"{self._root}/{name}"

    def _listed(self, path: str) -> Iterator[str]:
        self._fs.invalidate_cache()
        if not self._fs.exists(path):
            raise BenchError(f"{self.address}: there is no store. Correct {typed('--store')}, or gather into it first")
        yield from (
            str(one["name"]).rstrip("/") for one in self._fs.ls(path, detail=True) if one["type"] == "directory"
        )


def refused_by_client(address: str, error: Exception) -> Exception:
    """Returns what to raise for an error of a store's client, whose classes are its own (botocore has no OSError). Ours stay."""
    ours = type(error).__module__.partition(".")[0] in ("builtins", "daq_bench") and not isinstance(error, OSError)
    if ours or isinstance(error, BenchError):
        return error
    return BenchError(
        f"{typed('--store', address)} cannot be used: {in_words(error)}. "
        "Correct the address, or the rights that its client takes from the environment"
    )


def _opened(address: str) -> tuple[Any, str]:
    if not address.strip():
        raise BenchError(
            f"{typed('--store')} is empty. Name a folder or an address, such as {typed('--store', '/srv/runs')}"
        )
    if urlsplit(address).password:
        raise BenchError(
            f"{typed('--store')} holds a password, which every list of processes shows. Give it by the client's own environment"
        )
    try:
        from fsspec.core import url_to_fs

        fs, root = url_to_fs(address, use_listings_cache=False)
    except ImportError as error:
        raise BenchError(
            f"{typed('--store', address)} needs a library that is missing ({error}). `make setup PYTHON_GROUP=fleet` installs it"
        ) from None
    except ValueError as error:
        raise BenchError(f"{typed('--store', address)} is no folder and no address of a store ({error})") from None
    except Exception as error:  # some clients connect here
        raise refused_by_client(address, error) from None
    if "file" in fs.protocol and Path(root).exists() and not Path(root).is_dir():
        raise BenchError(f"{typed('--store', address)} is a file. Name a folder")
    return fs, str(root).rstrip("/")
