"""Promise: what some tested drives say about the lot that they came from, with its confidence. Imports statistics and base."""
