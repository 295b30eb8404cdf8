"""K of N drives of one model: conclusions from the tested ones about the lot, and differences of single drives."""
