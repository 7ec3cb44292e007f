"""Lets these tests import what all simulated tests share: `sim.disk`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
