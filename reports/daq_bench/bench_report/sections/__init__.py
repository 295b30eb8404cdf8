"""Promise: every section of a report stands in one order, and what belongs to no workload has a section here. Imports workloads and the
rooms below."""
