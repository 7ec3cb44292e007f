"""`penstock debug …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "debug",
    package=__name__,
    table={
        "bundle": ("bundle", "Gather what somebody needs who helps; no secrets, no records."),
        "restart": ("restart", "Restart a network process; clients stay connected."),
    },
    help="What helps when something is wrong.",
    epilog="""\b
Examples:
  penstock debug bundle
  penstock debug bundle --data /srv/events -o help.tar.gz
  penstock debug restart netproc-0""",
)
"""What the root calls for `penstock debug`."""
