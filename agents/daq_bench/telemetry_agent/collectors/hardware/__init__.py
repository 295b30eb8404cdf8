"""The collectors of what the machine says went wrong with its hardware: the kernel's log and the memory's error counters.

Imports `devices`, `reading` and `base`, and no other collector. `inventory/metrics.yml` names these files by their paths: they stay."""
