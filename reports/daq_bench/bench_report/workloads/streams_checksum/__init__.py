"""Streams with checksums (ATLAS)."""
