"""Promise: runs of one machine are compared only where they are comparable, and what changed is named. Imports
verdict and the rooms below."""
