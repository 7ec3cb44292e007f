"""`penstock service …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "service",
    package=__name__,
    table={
        "install": ("install", "Write its unit for this environment, enable it and start it."),
        "uninstall": ("uninstall", "Stop it and remove its unit; data and settings stay."),
        "status": ("status", "Whether systemd runs it, since when, from which unit."),
        "logs": ("logs", "What it said: its journal."),
    },
    aliases={"remove": "uninstall"},
    help="Start an appliance with the host, or with your login, by systemd.",
    epilog="""\b
Examples:
  penstock service install --user
  sudo /opt/penstock/bin/penstock service install
  penstock service logs -f""",
)
"""What the root calls for `penstock service`."""
