"""The questions to drives and to a BMC, each within a limit of time, and their tools' answers as fields.

Imports `reading` and `base`."""
