"""Telemetry agent: samples a candidate's sensors into a spool and delivers the spool to InfluxDB.

Promise: runs on Python >= 3.9 with the standard library alone, imports nothing else of the bench, writes only
inside its spool directory, and never loses count of a point.
"""

__version__ = "0.1.0"
