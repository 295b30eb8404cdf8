"""The parts of `make bench` that measure the telemetry agent, and how many agents one InfluxDB takes.

It imports `telemetry_agent`, whose real parts it measures, `bench_rounds`, `bench_model` and `rig`; its parts do not know each other."""
