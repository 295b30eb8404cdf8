"""Promise: a suite of somebody's own runs as every run does: one lock, the same guards, the same bundle; marked, so that it qualifies nobody."""
