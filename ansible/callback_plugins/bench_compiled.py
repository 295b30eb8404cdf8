"""Sends modules to a candidate compiled, and keeps what is sent in the repository's build folder. It reports nothing.

Ansible sends each module with the Python sources that it imports. The candidate compiled them for every task, which was two thirds
of a task's CPU time and seconds on an emulated machine. The bytecode goes along here; a candidate with another version of Python
ignores it and compiles the sources, as before. Putting such an archive together takes 0.2 to 0.5 s on this side: it is kept in a
folder named after the content of everything that it is made of.

Each task has a process of its own, forked from Ansible's. The plug-in loads before that what every one of them would load or parse
again."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import marshal
import os
import pickle
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import ansible.constants as constants
from ansible.executor import module_common
from ansible.parsing.dataloader import DataLoader
from ansible.plugins import loader
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

ARCHIVES = Path(__file__).resolve().parents[2] / "build" / "ansible-modules"
UNUSED_S_MAX = 24 * 3600.0  # archives of older sources are removed when nobody used them for so long
# PEP 552: hash-based, and the hash is not checked. The source lies beside it in the same archive, from the same moment.
HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)


def sources() -> Iterator[Path]:
    """Yield every file that modules and their utilities are taken from, but Ansible's own."""
    yield Path(__file__)
    for folder in (*constants.DEFAULT_MODULE_PATH, *constants.DEFAULT_MODULE_UTILS_PATH):
        yield from sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.suffix != ".pyc")


def fingerprint() -> str:
    """Return the name of the folder for archives of these sources, this Ansible and this Python."""
    digest = hashlib.sha256(f"{__version__} {sys.version} {constants.__file__}".encode())
    for path in sources():
        digest.update(f"\n{path}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


def add_compiled(archive: zipfile.ZipFile) -> None:
    """Put the bytecode of each source beside it; zipimport looks for it first."""
    for name in [one for one in archive.namelist() if one.endswith(".py")]:
        code = compile(archive.read(name), name, "exec", dont_inherit=True, optimize=0)
        archive.writestr(f"{name}c", HEADER + marshal.dumps(code))


def send_compiled() -> None:
    """Let Ansible add the bytecode when it has put an archive together."""
    without = module_common._add_module_to_zip

    def with_compiled(zf: zipfile.ZipFile, *arguments: Any, **named: Any) -> None:
        without(zf, *arguments, **named)
        add_compiled(zf)

    module_common._add_module_to_zip = with_compiled


def is_ours(folder: Path) -> bool:
    """Tell whether nobody else can have written into the folder: its archives run as root on candidates."""
    found = folder.lstat()
    return not folder.is_symlink() and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def drop_damaged(folder: Path) -> None:
    """Remove archives that a full disk or a crash left incomplete."""
    for path in folder.iterdir():
        if path.name.endswith((".lock", "-part")):
            continue
        try:
            module_common._CachedModule.load(str(path))
        except (OSError, EOFError, ValueError, TypeError, AttributeError, ImportError, pickle.UnpicklingError):
            path.unlink(missing_ok=True)


def drop_unused(now_s: float) -> None:
    """Remove the archives of sources that are no more."""
    for folder in ARCHIVES.iterdir():
        if now_s - folder.stat().st_mtime > UNUSED_S_MAX:
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)


def keep_archives() -> None:
    """Lay the kept archives where Ansible looks for those that it has made in this call."""
    kept = ARCHIVES / fingerprint()
    for folder in (ARCHIVES, kept):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (is_ours(ARCHIVES) and is_ours(kept)):
        return
    os.utime(kept)
    drop_unused(time.time())
    drop_damaged(kept)
    Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache").symlink_to(kept)


def load_for_all_tasks() -> None:
    """Load what each task's process would load: filters, tests, and the plug-ins that tasks here use."""
    for plugins in (loader.filter_loader, loader.test_loader):
        list(plugins.all())
    for name in ("assert", "bench_facts", "copy", "debug", "normal", "set_fact", "validate_argument_spec"):
        loader.action_loader.get(name, class_only=True)
    for name in ("env", "file", "vars"):
        loader.lookup_loader.get(name, class_only=True)
    for name in ("local", "ssh"):
        loader.connection_loader.get(name, class_only=True)
    loader.shell_loader.get("sh", class_only=True)
    gc.collect()
    gc.freeze()  # else each process's first collection writes to all memory that it shares


def parse_once() -> None:
    """Keep the files of a play's `vars_files`, which Ansible parses anew for each task."""
    without = DataLoader.load_from_file

    def kept(self: DataLoader, file_name: str, cache: str = "all", **named: Any) -> Any:
        return without(self, file_name, cache="all" if cache == "vaulted" else cache, **named)

    DataLoader.load_from_file = kept


class CallbackModule(CallbackBase):
    """A callback is loaded before the first task and in the process that all tasks are forked from."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "bench_compiled"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Set both up. Where the build folder cannot be written, archives last for one call, as without this plug-in."""
        super().__init__(*arguments, **named)
        send_compiled()
        parse_once()
        # Set in many containers: a module on this machine would read its archive from standard input byte by byte.
        os.environ.pop("PYTHONUNBUFFERED", None)
        try:
            keep_archives()
        except OSError as error:
            self._display.v(f"bench_compiled: archives are not kept: {error}")
        load_for_all_tasks()
