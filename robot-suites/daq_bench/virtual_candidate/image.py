"""The guest's kernel, initramfs and root image: built once from the host's own apt sources, cached by what goes in."""

from __future__ import annotations

import hashlib
import lzma
import os
import shlex
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate.apt_sources import Sources, host_sources
from daq_bench.virtual_candidate.files import locked

GUEST = Path(__file__).parent / "guest"
BUILD_S_MAX = 1200.0
_FORMAT = "1"  # raise it when this file makes something else of the same input


@dataclass(frozen=True)
class Image:
    """A built guest; the files in `directory` are never written to again."""

    directory: Path

    @property
    def kernel(self) -> Path:
        """Uncompressed: QEMU enters it directly (PVH), and the guest need not unpack it under emulation."""
        return self.directory / "vmlinux"

    @property
    def initramfs(self) -> Path:
        return self.directory / "initramfs.img"

    @property
    def root(self) -> Path:
        return self.directory / "root.img"


def ensure(cache: Path, say: Callable[[str], None]) -> Image:
    """The image for this host, built when the cache has none. Two callers at once build once.

    Raises BenchError with the end of the log when the build fails; the cache then holds nothing new."""
    sources = host_sources()
    cache.mkdir(parents=True, exist_ok=True)
    image = Image(cache / f"guest-{sources.codename}-{digest(sources)}")
    with locked(cache / "build.lock"):
        if not image.directory.exists():
            say("building the guest's image, one to two minutes, once")
            _build(image, sources, cache)
    return image


def digest(sources: Sources) -> str:
    """Names an image by what goes into it: guest files, sources, this recipe's version."""
    state = hashlib.sha256(f"{_FORMAT}\0{sources}".encode())
    for path in sorted(path for path in GUEST.rglob("*") if path.is_file()):
        state.update(f"\0{path.relative_to(GUEST)}\0".encode() + path.read_bytes())
    return state.hexdigest()[:16]


def packages(text: str) -> list[str]:
    """The names in a list with comments."""
    return [name for line in text.splitlines() if (name := line.partition("#")[0].strip())]


def _build(image: Image, sources: Sources, cache: Path) -> None:
    for left in cache.glob("guest-*.new"):  # a killed build left them; the lock says that no build is at work
        shutil.rmtree(left)
    log = cache / "build.log"
    fresh = image.directory.with_suffix(".new")
    fresh.mkdir()
    try:
        # World-writable: without root, mmdebstrap's hook runs as another user of a namespace.
        fresh.chmod(0o777)
        with tempfile.TemporaryDirectory() as folder:
            argv = _mmdebstrap(sources, Path(folder), fresh)
            with log.open("wb") as output:
                _run(argv, output.fileno(), log)
        (fresh / "vmlinux").write_bytes(unpack_kernel((fresh / "vmlinuz").read_bytes()))
        (fresh / "vmlinuz").unlink()
        fresh.chmod(0o755)
        fresh.rename(image.directory)
    finally:
        if fresh.exists():
            shutil.rmtree(fresh)


def _mmdebstrap(sources: Sources, folder: Path, output: Path) -> list[str]:
    folder.chmod(0o755)
    mirrors = []
    for name, text in (("host.sources", sources.sources), ("host.list", sources.one_line)):
        if text.strip():
            (folder / name).write_text(text, encoding="utf-8")
            mirrors.append(str(folder / name))
    configure = shlex.join(["bash", str(GUEST / "configure.sh")])
    hook = f'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" {configure} "$1" {shlex.quote(str(output))} {sources.kernel}'
    return [
        "mmdebstrap",
        "--variant=minbase",
        "--format=null",
        f"--include={','.join(packages((GUEST / 'packages.txt').read_text(encoding='utf-8')))}",
        *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("man", "doc", "locale", "info")),
        '--aptopt=Apt::Install-Recommends "false"',
        *(f"--aptopt={option}" for option in sources.options),
        f"--customize-hook={hook}",
        sources.codename,
        "/dev/null",
        *mirrors,
    ]


def _run(argv: list[str], output: int, log: Path) -> None:
    # C.UTF-8: maintainer scripts complain about a locale that the tree does not have.
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
    try:
        status = process.wait(BUILD_S_MAX)
    except BaseException:
        process.terminate()  # mmdebstrap unmounts and cleans up on SIGTERM
        process.wait()
        raise
    if status != 0:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise BenchError(f"building the guest's image failed. The end of {log}:\n{text[-2000:]}")


def unpack_kernel(bz_image: bytes) -> bytes:
    """The ELF kernel inside of a bzImage: compressed data behind the boot code, found by its magic number.

    Raises BenchError when no known compression gives an ELF file."""
    for magic, unpack in (
        (b"\xfd7zXZ\0", _unpack_xz),
        (b"\x28\xb5\x2f\xfd", _unpack_zstd),
        (b"\x1f\x8b\x08", _unpack_gzip),
    ):
        start = bz_image.find(magic)
        while start >= 0:
            unpacked = unpack(bz_image[start:])
            if unpacked.startswith(b"\x7fELF"):
                return unpacked
            start = bz_image.find(magic, start + 1)
    raise BenchError("the distribution's kernel is compressed in a way that the virtual candidate does not know")


def _unpack_xz(data: bytes) -> bytes:
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)
    except lzma.LZMAError:
        return b""


def _unpack_gzip(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(data)
    except zlib.error:
        return b""


def _unpack_zstd(data: bytes) -> bytes:
    # zstd writes out the first frame, then complains about what follows it.
    return subprocess.run(["zstd", "--decompress", "--stdout"], input=data, capture_output=True, check=False).stdout
