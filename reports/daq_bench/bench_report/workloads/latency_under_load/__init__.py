"""Latency at rising load."""
