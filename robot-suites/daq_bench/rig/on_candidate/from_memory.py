"""Runs a program that arrives on standard input, from memory: nothing of it is left on the candidate. `NAME ARGUMENT ...`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    fd = os.memfd_create(Path(sys.argv[1]).name, os.MFD_CLOEXEC)
    with os.fdopen(fd, "wb", closefd=False) as memory:
        memory.write(sys.stdin.buffer.read())
    try:
        os.execve(fd, sys.argv[1:], os.environ)
    except OSError as error:
        sys.exit(f"{sys.argv[1]} cannot run on this machine: {error.strerror}")
