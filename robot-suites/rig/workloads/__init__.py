"""The loads that a scenario puts on a candidate; each writes its raw output and one schema-checked JSON document."""
