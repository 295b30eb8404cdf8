"""Each activity of a DAQ day alone and beside each other one."""
