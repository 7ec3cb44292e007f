"""`penstock service …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "service",
    package=__name__,
    table={
        "install": ("install", "Write the unit for this installation, enable and start it."),
        "uninstall": (
            "uninstall",
            "Stop the service and remove its units; data and settings stay.",
        ),
        "status": ("status", "Show whether systemd runs the service, and since when."),
        "logs": ("logs", "Show the service's journal."),
    },
    aliases={"remove": "uninstall"},
    help="Install and control a systemd service of the host, or of your login.",
    epilog="""\b
Examples:
  penstock service install --user
  sudo /opt/penstock/bin/penstock service install
  penstock service logs -f""",
)
"""What the root calls for `penstock service`."""
