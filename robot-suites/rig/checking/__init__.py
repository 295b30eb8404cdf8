"""Promise: who checks a bundle takes data from it, and trust from their own configuration alone. Imports workloads and the rooms below."""
