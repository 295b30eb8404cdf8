"""`python -m virtual_candidate`: the command behind `make virtual-up` and `make virtual-down`."""

import sys

from virtual_candidate.cli import main

sys.exit(main())
