"""Turns a run bundle into its report. Reads run bundles and never a host; it imports only bench_model of our own."""
