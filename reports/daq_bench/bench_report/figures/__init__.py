"""Promise: a figure draws what its data say and names units and uncertainty. Imports document, reading and base."""
