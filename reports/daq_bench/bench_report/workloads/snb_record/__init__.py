"""A supernova-burst record."""
