"""Promise: a number reads the same everywhere, with its unit; a field that is missing says where it should have been.
Imports bench_model."""
