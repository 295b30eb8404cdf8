"""The collectors of processors: what their cores do, at which frequency, by whose interrupts, and what they draw and move.

Imports `devices`, `reading` and `base`, and no other collector. `inventory/metrics.yml` names these files by their paths: they stay."""
