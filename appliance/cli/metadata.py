"""`penstock metadata …`: the table of its commands."""

from typing import Final

from appliance.cli.root import LazyGroup, Table

_TABLE: Final[Table] = {
    "repair": (
        "appliance.cli.metadata_repair",
        "Save what can be saved of a damaged metadata log.",
    ),
}

command = LazyGroup(
    "metadata",
    table=_TABLE,
    help="The metadata log of a data folder: topics, their settings, quotas.",
    epilog="""\b
Examples:
  penstock metadata repair penstock-data --dry-run
  penstock metadata repair penstock-data""",
)
"""What the root calls for `penstock metadata`."""
