"""`points.lp` and its accounting: whole lines in a bounded file, thinned where room ends, counted whatever is killed when.

Imports `base`."""
