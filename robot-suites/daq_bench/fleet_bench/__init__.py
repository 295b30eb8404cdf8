"""The part of `make bench` that measures a fleet's own cost on the control node, by simulated candidates. Imports rig, bench_rounds."""
