"""Files that appear whole or not at all: a reader, or a crash, sees either the old content or the new one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

READABLE, OWN = 0o644, 0o600


def replace_file(
    file: Path,
    content: bytes | str,
    mode: int = READABLE,
    *,
    durable: bool = False,
    put: Callable[[Path, Path], object] = Path.replace,
) -> None:
    """The file with this content. Leaves no rest; raises OSError. `durable`: it and its name are on the disk when this returns.
    `put`: os.link for a file that must not be there yet."""
    part = written_beside(file, content, mode, durable=durable)
    try:
        put(part, file)
    finally:
        part.unlink(missing_ok=True)
    if durable:
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def written_beside(file: Path, content: bytes | str, mode: int = READABLE, *, durable: bool = False) -> Path:
    """The content in a hidden file beside `file`, which may replace it."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWN), "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            if durable:
                os.fsync(stream.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part
