"""`penstock client …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "client",
    package=__name__,
    table={
        "list": ("list", "List who is connected, with rates and pauses."),
        "metrics": ("metrics", "Show what clients say of themselves."),
    },
    aliases={"ls": "list"},
    help="See who is connected to an appliance of this host.",
    epilog="""\b
Examples:
  penstock client list -w
  penstock client list --throttled -o json
  penstock client metrics""",
)
"""What the root calls for `penstock client`."""
