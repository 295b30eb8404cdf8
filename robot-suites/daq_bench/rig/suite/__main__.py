"""`python -m daq_bench.rig.suite`: the process behind an own suite."""

import sys

from daq_bench.rig.suite.serving import main

sys.exit(main())
