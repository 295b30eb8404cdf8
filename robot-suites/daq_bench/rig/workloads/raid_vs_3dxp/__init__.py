"""A reference drive against RAID sets, in paired rounds."""
