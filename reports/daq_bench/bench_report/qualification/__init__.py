"""The qualification report: one run, for whoever must decide by it. Imports output, sections and the rooms below."""
