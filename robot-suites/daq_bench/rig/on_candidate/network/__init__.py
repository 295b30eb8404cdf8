"""Promise: several hosts, on one machine or on several, and the network between them, for the programs of this package."""
