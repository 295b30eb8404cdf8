"""What stops the storage role. The text is for the user: what, where, remedy."""

from __future__ import annotations


class StorageError(Exception):
    """Nothing more is done; the text names field, drive or command, and the remedy."""
