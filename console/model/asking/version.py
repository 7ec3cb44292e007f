"""How this installation of Penstock was made."""

from importlib.util import find_spec


def compiled() -> bool:
    """True if the modules on the path of every request are machine code (setup.py)."""
    found = find_spec("appliance.wire.batch")
    return found is not None and not (found.origin or "").endswith(".py")
