"""`penstock event …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "event",
    package=__name__,
    table={"list": ("list", "List events, or follow them with -f.")},
    aliases={"ls": "list"},
    help="List and follow the events of an appliance of this host.",
    epilog="""\b
Examples:
  penstock event list -f
  penstock event list --level warning --topic orders -o json""",
)
"""What the root calls for `penstock event`."""
