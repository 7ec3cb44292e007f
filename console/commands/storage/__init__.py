"""`penstock storage …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "storage",
    package=__name__,
    table={
        "verify": ("verify", "Verify every file of a data folder."),
        "repair": ("repair", "Set damaged data aside so that the rest is served."),
        "remote": ("remote", "Show what tiered storage has in the remote store."),
        "reclaim": ("reclaim", "Show what takes disk space, and delete what you name."),
    },
    help="Verify and repair the files of a data folder.",
    epilog="""\b
Examples:
  penstock storage verify
  penstock storage verify /srv/events --topic orders
  penstock storage repair /srv/events --dry-run""",
)
"""What the root calls for `penstock storage`."""
