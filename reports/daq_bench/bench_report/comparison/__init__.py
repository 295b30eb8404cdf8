"""Two to eight candidates, or the configurations of one run, side by side: which differences decide between them and which do not."""
