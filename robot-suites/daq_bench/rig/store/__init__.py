"""Promise: bundles of several control nodes come into one store, and out of it, as they were sealed. Imports checking and below."""
