"""Promise: every telemetry point goes through one spool, and InfluxDB may come and go. Imports candidate and base."""
