"""Concurrent analysis of ROOT files (PROOF)."""
