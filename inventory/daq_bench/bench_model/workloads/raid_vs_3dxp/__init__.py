"""Sets of drives against a reference drive, in pairs."""
