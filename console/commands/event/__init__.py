"""`penstock event …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "event",
    package=__name__,
    table={"list": ("list", "List what happened, or follow it with -f.")},
    aliases={"ls": "list"},
    help="See what happens in an appliance of this host: its own events.",
    epilog="""\b
Examples:
  penstock event list -f
  penstock event list --level warning --topic orders -o json""",
)
"""What the root calls for `penstock event`."""
