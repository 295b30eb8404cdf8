"""`python -m rig`: the commands behind the make targets."""

import sys

from rig.console import commands

sys.exit(commands())
