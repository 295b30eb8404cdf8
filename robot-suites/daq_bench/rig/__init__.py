"""Drives one qualification: shell, workloads, run bundle, progress. The Robot keyword libraries are thin over it."""
