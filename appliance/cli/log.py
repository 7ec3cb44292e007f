"""`penstock log …`: the table of its commands."""

from typing import Final

from appliance.cli.root import LazyGroup, Table

_TABLE: Final[Table] = {
    "dump": (
        "appliance.cli.log_dump",
        "Show what is in files of a data folder, and whether it is sound.",
    ),
}

command = LazyGroup(
    "log",
    table=_TABLE,
    help="Look into the files of a data folder.",
    epilog="""\b
Examples:
  penstock log dump penstock-data/*/*.log
  penstock log dump penstock-data/__cluster_metadata-0/*.log --records""",
)
"""What the root calls for `penstock log`."""
