"""Promise: a checker takes data from a bundle, and trust from its own configuration alone. Imports workloads and the rooms below."""
