"""`penstock debug …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "debug",
    package=__name__,
    table={
        "bundle": ("bundle", "Collect a bundle for a bug report, without records or secrets."),
        "restart": ("restart", "Restart a network process; clients stay connected."),
    },
    help="Collect a bundle for a bug report; restart single processes.",
    epilog="""\b
Examples:
  penstock debug bundle
  penstock debug bundle --data /srv/events -o help.tar.gz
  penstock debug restart netproc-0""",
)
"""What the root calls for `penstock debug`."""
