"""The part of `make bench` that measures reports on bundles with much telemetry, which it makes.

It imports `bench_report` and `rig`, whose work it times, `bench_rounds` and `bench_model`."""
