"""Promise: contenders run in paired rounds on a quiet machine until their ratios are known. Imports `rig` and no part of a bench."""
