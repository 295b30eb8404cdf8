"""`python -m daq_bench.virtual_candidate`: the command behind `make virtual-up` and `make virtual-down`."""

import sys

from daq_bench.virtual_candidate.cli import main

sys.exit(main())
