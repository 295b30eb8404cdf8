"""`python -m analysis_reader`."""

from __future__ import annotations

from analysis_reader.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
