"""Entry point of ``python -m telemetry_agent``."""

from telemetry_agent.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
