"""Promise: whole runs on a server that exists only as a seeded physical model: its tools' raw outputs go through the real bench, and the
truth of each run is known here alone. Nothing of it reaches a verdict but what a real server would have shown."""
