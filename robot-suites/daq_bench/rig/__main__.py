"""`python -m daq_bench.rig`: the commands behind the make targets."""

import sys

from daq_bench.rig.console import commands

sys.exit(commands())
