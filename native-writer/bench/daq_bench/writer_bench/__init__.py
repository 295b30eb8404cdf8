"""The parts of `make bench` that measure daqwriter: against fio, memory and the original applications, its cost, and its memory.

It imports `bench_rounds`, `bench_model` and `rig`; its parts do not know each other."""
