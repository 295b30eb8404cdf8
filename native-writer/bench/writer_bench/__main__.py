"""`python -m writer_bench`: the command behind `make bench`."""

import sys

from writer_bench.cli import main

sys.exit(main())
