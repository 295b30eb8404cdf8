"""Measures contenders side by side in paired rounds and holds the ratios against criteria; what `make bench` runs.

Promise: it knows no part. Parts are found by name through the table in `bench_rounds.parts` and loaded when a command begins. It imports
`bench_model` and `rig`, and of the benches none."""
