"""`penstock secure …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "secure",
    package=__name__,
    table={
        "init": ("certificates:init", "Create an authority, a server certificate and settings."),
        "client": ("certificates:client", "Create a client's certificate and properties."),
        "server": (
            "certificates:server",
            "Renew the server's certificate, or create another.",
        ),
    },
    help="""Open an appliance to other hosts, encrypted, to clients with a certificate or a login.

    An authority of your own signs the certificates; its folder belongs to its owner alone. Each
    client is a principal, User:NAME, for quotas, ACLs and events.""",
    epilog="""\b
Examples:
  penstock secure init --host edge.example.org
  penstock up --config penstock-secure/server.properties
  penstock user add loader --can write:orders --can read:orders > loader.properties""",
)
"""What the root calls for `penstock secure`."""
