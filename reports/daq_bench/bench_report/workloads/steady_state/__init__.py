"""Rounds until steady state (SNIA SSS PTS)."""
