"""Builds and undoes the storage under test. Pure core (layout, devices, guard, nvme), thin edge (machine)."""
