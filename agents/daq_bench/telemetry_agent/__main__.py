"""Entry point of ``python -m daq_bench.telemetry_agent``."""

from daq_bench.telemetry_agent.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
