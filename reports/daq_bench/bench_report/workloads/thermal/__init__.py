"""Thermal throttling and the fans' sweep."""
