"""K of N drives of one model: what the tested ones say about the lot, and what sets single drives apart."""
