"""Promise: bundles of several control nodes come into one store, and out of it, unchanged. Imports checking and below."""
