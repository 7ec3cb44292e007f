"""Lets these tests import what they share by its whole name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
