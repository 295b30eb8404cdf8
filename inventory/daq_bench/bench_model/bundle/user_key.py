"""A key of the user's own, by which the bench knows again what it wrote itself where others can write too.

It proves nothing to anybody else: that is what signatures are for."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from daq_bench.bench_model.base.whole_files import OWN, replace_file
from daq_bench.bench_model.bundle.files import open_file

FILE, KEY_BYTES = "history.key", 32


def user_key() -> bytes | None:
    """From `$XDG_STATE_HOME/daq-storage-bench`, made when it is first asked for. None for one that others could have read or made.

    Raises OSError or BenchError where none can be read or kept."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()) / "daq-storage-bench"
    file = home / FILE
    home.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        with contextlib.suppress(FileExistsError):
            replace_file(file, secrets.token_bytes(KEY_BYTES), OWN, durable=True, put=os.link)
    with open_file(home, file.name, KEY_BYTES) as stream:
        found, key = os.fstat(stream.fileno()), stream.read()
    own = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return key if own and len(key) == KEY_BYTES else None
