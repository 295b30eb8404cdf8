"""The storage application with its multi-threaded checksum (ATLAS)."""
