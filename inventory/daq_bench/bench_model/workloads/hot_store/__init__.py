"""The hot store (DAQDB)."""
