"""`penstock topic replicas …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "replicas",
    package=__name__,
    table={
        "set": ("set", "Change the replication factor or the assignment."),
        "status": ("status", "Show reassignments in progress."),
        "cancel": ("cancel", "Cancel reassignments in progress."),
    },
    aliases={"ls": "status", "list": "status"},
    help="Say on which nodes the replicas of a topic are.",
    epilog="""\b
Examples:
  penstock topic replicas set orders 3 --dry-run
  penstock topic replicas set orders 0:1,2,3 1:2,3,1 --wait
  penstock topic replicas status -w""",
)
"""What `penstock topic` calls for `replicas`."""
