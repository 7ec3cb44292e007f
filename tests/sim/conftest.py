"""Lets these tests import their world as every other room does: `sim.world`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
