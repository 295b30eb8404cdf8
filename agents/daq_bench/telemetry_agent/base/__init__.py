"""Serves every room and belongs to none: points and their text, the clock, files, sizes, thread priority, tools that are run.

Imports the standard library alone."""
