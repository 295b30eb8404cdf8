"""A soak under sustained load: where a drive throttles, and what its cooling is worth."""
