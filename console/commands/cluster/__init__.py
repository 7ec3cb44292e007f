"""`penstock cluster …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "cluster",
    package=__name__,
    table={
        "status": ("status", "Nodes, quorum, and which replicas are missing, and why."),
    },
    aliases={"health": "status", "info": "status"},
    help="See how the nodes of a cluster are; take one out, replace one.",
    epilog="""\b
Examples:
  penstock cluster status -w""",
)
"""What the root calls for `penstock cluster`."""
