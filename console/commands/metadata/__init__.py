"""`penstock metadata …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "metadata",
    package=__name__,
    table={"repair": ("repair", "Save what can be saved of a damaged metadata log.")},
    help="The metadata log of a data folder: topics, their settings, quotas.",
    epilog="""\b
Examples:
  penstock metadata repair penstock-data --dry-run
  penstock metadata repair penstock-data""",
)
"""What the root calls for `penstock metadata`."""
