"""Reads ROOT files as many concurrent analysis jobs do, and proves that it read them from the drive. Imports nothing else of the bench."""
