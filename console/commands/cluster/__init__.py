"""`penstock cluster …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "cluster",
    package=__name__,
    table={
        "status": ("status", "Show nodes, the quorum and replicas that are out of sync."),
        "invite": ("invite", "Print the command that starts the next node."),
        "join": ("join", "Start as the node that penstock cluster invite --host has invited."),
        "grow": ("grow", "Raise the replication factor of every topic, to three for example."),
        "balance": ("balance", "Even replicas and leaders over the nodes."),
        "leave": ("leave", "Remove a node; other nodes take its replicas."),
        "replace": ("replace", "Replace a lost node by an empty one."),
        "new-id": ("new_id", "Print a random id for a new cluster."),
    },
    aliases={"health": "status", "info": "status", "decommission": "leave", "rebalance": "balance"},
    help="Inspect the nodes of a cluster; add, remove and replace nodes.",
    epilog="""\b
Examples:
  penstock cluster status -w
  penstock cluster invite
  penstock cluster balance --dry-run
  penstock cluster leave 3 --dry-run
  penstock cluster replace 2""",
)
"""What the root calls for `penstock cluster`."""
