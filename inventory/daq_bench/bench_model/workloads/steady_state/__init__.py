"""Steady state by SNIA SSS PTS 2.0.2: rounds and their window, and the figures that follow."""
