"""What the reader cannot do, in one sentence for the user."""

from __future__ import annotations


class ReaderError(Exception):
    """Names the object (file, device, worker) and the remedy; the command line prints it and exits with 1."""
