"""`penstock cluster …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "cluster",
    package=__name__,
    table={
        "status": ("status", "Nodes, quorum, and which replicas are missing, and why."),
        "invite": ("invite", "Print the command that starts the next node."),
        "grow": ("grow", "Every topic gets as many replicas, three for example."),
        "leave": ("leave", "Take a node out: others get its replicas."),
        "replace": ("replace", "Put an empty node in the place of a lost one."),
        "new-id": ("new_id", "Print a fresh id for a new cluster."),
    },
    aliases={"health": "status", "info": "status", "decommission": "leave"},
    help="See how the nodes of a cluster are; add one, take one out, replace one.",
    epilog="""\b
Examples:
  penstock cluster status -w
  penstock cluster invite
  penstock cluster leave 3 --dry-run
  penstock cluster replace 2""",
)
"""What the root calls for `penstock cluster`."""
