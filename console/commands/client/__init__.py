"""`penstock client …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "client",
    package=__name__,
    table={
        "list": ("list", "List client connections with their rates and throttling."),
        "metrics": ("metrics", "Show the metrics that clients push (KIP-714)."),
    },
    aliases={"ls": "list"},
    help="Inspect the clients of an appliance of this host.",
    epilog="""\b
Examples:
  penstock client list -w
  penstock client list --throttled -o json
  penstock client metrics""",
)
"""What the root calls for `penstock client`."""
