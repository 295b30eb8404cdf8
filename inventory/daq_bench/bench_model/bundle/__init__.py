"""Promise: whatever stands in a run bundle is read as data, bounded and strict. Imports profiles and the rooms below."""
