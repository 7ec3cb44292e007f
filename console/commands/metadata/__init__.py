"""`penstock metadata …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "metadata",
    package=__name__,
    table={"repair": ("repair", "Rebuild a damaged metadata log.")},
    help="Repair the metadata log of a data folder: topics, their settings, quotas.",
    epilog="""\b
Examples:
  penstock metadata repair penstock-data --dry-run
  penstock metadata repair penstock-data""",
)
"""What the root calls for `penstock metadata`."""
