"""`penstock backup …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "backup",
    package=__name__,
    table={
        "create": ("create", "Take a backup of a running appliance."),
        "list": ("list", "Show which backups there are."),
        "verify": ("verify", "Read backups through."),
        "prune": ("prune", "Forget old backups."),
    },
    help="Backups of an appliance, in a folder or a bucket. penstock restore makes a data folder"
    " of one.",
    epilog="""\b
Examples:
  penstock backup create /mnt/backups
  penstock backup create s3://bucket/events --keep 14
  penstock backup verify /mnt/backups""",
)
"""What the root calls for `penstock backup`."""
