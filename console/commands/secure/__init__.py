"""`penstock secure …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "secure",
    package=__name__,
    table={
        "init": ("certificates:init", "Make an authority, a server's certificate, settings."),
        "client": ("certificates:client", "Make a client's certificate and its properties."),
        "server": (
            "certificates:server",
            "Renew the server's certificate, or make one more.",
        ),
    },
    help="""Open an appliance to other hosts, encrypted, and only to clients with a certificate.

    Certificates are signed by an authority of your own in one folder, which belongs to its owner
    alone. Each client is a principal, User:NAME, for quotas and logs.""",
    epilog="""\b
Examples:
  penstock secure init --host edge.example.org
  penstock up --config penstock-secure/server.properties
  penstock secure client loader
  penstock topic list --command-config penstock-secure/clients/loader/client.properties""",
)
"""What the root calls for `penstock secure`."""
