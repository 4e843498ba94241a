import sys

from . import self_check

sys.exit(self_check())
