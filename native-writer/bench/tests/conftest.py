"""The fixtures of all benches' tests."""

from __future__ import annotations

from bench_fixtures import daqwriter, disk

__all__ = ["daqwriter", "disk"]  # fixtures, for pytest to find
