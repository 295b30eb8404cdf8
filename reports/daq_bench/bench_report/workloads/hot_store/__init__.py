"""The key-value hot store (DAQDB)."""
