"""`penstock storage …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "storage",
    package=__name__,
    table={
        "verify": ("verify", "Read a data folder through, and tell every damage."),
        "repair": ("repair", "Set aside what is damaged, so that the rest serves."),
        "reclaim": ("reclaim", "Show what takes space, and give back what is named."),
    },
    help="The files of a data folder.",
    epilog="""\b
Examples:
  penstock storage verify
  penstock storage verify /srv/events --topic orders
  penstock storage repair /srv/events --dry-run""",
)
"""What the root calls for `penstock storage`."""
