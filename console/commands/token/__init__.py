"""`penstock token …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "token",
    package=__name__,
    table={
        "list": ("list", "List delegation tokens: whose they are and when they end."),
        "create": ("change:create", "Create a token and print the properties of its client."),
        "renew": ("change:renew", "Let tokens live longer."),
        "expire": ("change:expire", "End tokens at once or soon."),
    },
    aliases={"ls": "list", "add": "create", "rm": "expire", "remove": "expire"},
    help="Manage delegation tokens, by which clients log in for a while.",
    epilog="""\b
Examples:
  penstock token create --login loader > worker.properties
  penstock token list --login loader
  penstock token renew LbKx1uN2QmWcJ0nYx5cVYQ --login loader
  penstock token expire LbKx1uN2QmWcJ0nYx5cVYQ --login loader""",
)
"""What the root calls for `penstock token`."""
