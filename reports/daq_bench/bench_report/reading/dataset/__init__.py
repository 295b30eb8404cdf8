"""A run bundle's content as typed values: the vocabulary of figures and tables, a module for each part that is read.

Promise: plain immutable data. Optional means that a bundle may lack it (an interrupted run, a device that does
not report it); no default stands in for a measurement. Units are in the names.
"""
