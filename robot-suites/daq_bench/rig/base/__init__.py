"""Promise: the bundle that a run writes holds whole files or none; a command never outlives its caller. Imports bench_model."""
