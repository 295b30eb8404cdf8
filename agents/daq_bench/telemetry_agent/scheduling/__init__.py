"""Runs collectors against absolute deadlines; one that is late or fails delays no other, and every missed deadline is counted.

Imports `reading` and `base`."""
