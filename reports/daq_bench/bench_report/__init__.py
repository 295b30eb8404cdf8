"""Turns a run bundle into its report. Reads run bundles and never a host; of our own it imports bench_model only."""
