"""Promise: a section says what one workload or quantity showed, or why it cannot. Imports figures, tables and the rooms below."""
