"""The reader's error: says in one sentence for the user what cannot be done."""

from __future__ import annotations


class ReaderError(Exception):
    """Names the object (file, device, worker) and the remedy; the command line prints it and exits with 1."""
