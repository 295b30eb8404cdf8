"""Two to eight candidates, or the configurations of one run, side by side: what decides between them and what does not."""
