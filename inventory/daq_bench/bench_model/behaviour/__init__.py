"""Promise: what telemetry says of the server under load, with the cause where the evidence names one. Imports bundle,
statistics and the rooms below."""
