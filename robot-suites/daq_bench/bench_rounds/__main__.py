"""`python -m daq_bench.bench_rounds`: the command behind `make bench`."""

import sys

from daq_bench.bench_rounds.cli import main

sys.exit(main())
