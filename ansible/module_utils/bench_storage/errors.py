"""The errors that stop the storage role. The text is for the user: what, where, remedy."""

from __future__ import annotations


class StorageError(Exception):
    """The role stops; the text names field, drive or command, and the remedy."""
