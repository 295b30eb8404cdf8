"""The thermal soak."""
