"""`python -m daq_bench.rig`: the commands behind the make targets."""

import sys

from daq_bench.rig.cli import main

sys.exit(main())
