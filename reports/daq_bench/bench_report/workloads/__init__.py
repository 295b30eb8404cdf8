"""Promise: a section says what one workload showed, or why it cannot. A module for each workload, or a room whose `section` it is.
Imports figures, tables and the rooms below."""
