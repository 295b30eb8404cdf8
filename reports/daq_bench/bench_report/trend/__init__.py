"""The trend report: the runs of one candidate over nights. Imports output and figures, and the rooms below."""
