"""`penstock user …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "user",
    package=__name__,
    table={
        "list": ("list", "List the users that can log in."),
        "add": ("change:add", "Add a user and print the properties of its clients."),
        "password": ("change:password", "Change a user's password."),
        "remove": ("remove", "Remove users."),
    },
    aliases={"ls": "list", "create": "add", "rm": "remove", "delete": "remove"},
    help="Manage the users that log in with SASL.",
    epilog="""\b
Examples:
  penstock user add loader > loader.properties
  penstock user add reader --form java --mechanism SCRAM-SHA-256
  penstock user list
  penstock user password loader > loader.properties""",
)
"""What the root calls for `penstock user`."""
