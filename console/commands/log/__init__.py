"""`penstock log …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "log",
    package=__name__,
    table={"dump": ("dump", "Dump segments, indexes and snapshots, and check them.")},
    help="Inspect the files of a data folder.",
    epilog="""\b
Examples:
  penstock log dump penstock-data/*/*.log
  penstock log dump penstock-data/__cluster_metadata-0/*.log --records""",
)
"""What the root calls for `penstock log`."""
