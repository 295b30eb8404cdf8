"""`python -m bench_rounds`: the command behind `make bench`."""

import sys

from bench_rounds.cli import main

sys.exit(main())
