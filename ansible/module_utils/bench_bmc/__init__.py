"""Promise: a server's BIOS settings and fans are set through its BMC, read back and given back. Python 3.9, standard library and sushy."""
