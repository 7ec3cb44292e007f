"""What every test may use: `appliance` and `fresh_appliance` of penstock's own plugin."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

pytest_plugins = ["penstock.pytest_plugin"]
