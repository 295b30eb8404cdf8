"""The module that `Library    DaqBench` of a Robot Framework suite imports."""

from daq_bench.rig.suite.library import DaqBench

__all__ = ["DaqBench"]
