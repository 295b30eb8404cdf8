"""The bounded wear experiment: what the drives counted, and the years of life that follow."""
