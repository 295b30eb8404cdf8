"""Carries the spool to InfluxDB behind the cursor, so that each point is stored or counted as refused.

Imports `spool` and `base`."""
