"""Promise: units, errors and the load of a readout unit mean the same everywhere. Imports nothing of ours."""
