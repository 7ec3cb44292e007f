"""`penstock backup …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "backup",
    package=__name__,
    table={
        "create": ("create", "Take a backup of a running appliance."),
        "list": ("list", "List the backups."),
        "verify": ("verify", "Verify that backups are complete and intact."),
        "prune": ("prune", "Delete old backups."),
    },
    help="Back up an appliance to a folder or a bucket. penstock restore restores a data "
    "folder from a backup.",
    epilog="""\b
Examples:
  penstock backup create /mnt/backups
  penstock backup create s3://bucket/events --keep 14
  penstock backup verify /mnt/backups""",
)
"""What the root calls for `penstock backup`."""
