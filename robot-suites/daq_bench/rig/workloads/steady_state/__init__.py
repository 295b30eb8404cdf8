"""Steady state by SNIA SSS PTS 2.0.2."""
