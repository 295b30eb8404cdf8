"""Each workload is a folder here, named as in a scenario: its plan, its model, its run and its part of a report."""
