"""Promise: a workload is one thing with one name: suite, parameters, result. Each loads the candidate and returns
what it measured. Imports telemetry and the rooms below."""
