"""One module for each part of the report that belongs to a workload or to an analysis of the whole run."""
