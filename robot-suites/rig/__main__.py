"""`python -m rig`: the commands behind the make targets."""

import sys

from rig.cli import main

sys.exit(main())
