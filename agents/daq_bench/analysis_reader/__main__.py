"""`python -m daq_bench.analysis_reader`."""

from __future__ import annotations

from daq_bench.analysis_reader.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
