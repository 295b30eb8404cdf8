"""The pure core of the bench: profiles, units, statistics and the verdict. Imports nothing else of ours."""
