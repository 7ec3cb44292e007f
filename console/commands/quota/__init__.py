"""`penstock quota …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "quota",
    package=__name__,
    table={
        "list": ("list", "List quotas and whose they are."),
        "describe": ("list:describe", "Show which quotas hold for a client, and why."),
        "explain": ("explain", "Show every rule for a client in order, and which holds."),
        "set": ("change:set_", "Set quotas of users, client ids, addresses or defaults."),
        "unset": ("change:unset", "Take quotas away."),
        "usage": ("usage", "Show how much is used now, and who is throttled."),
    },
    aliases={"ls": "list", "info": "describe", "alter": "set", "rm": "unset", "delete": "unset"},
    help="Say how much clients may send, read, ask, change and connect.",
    epilog="""\b
Examples:
  penstock quota set --client-id loader produce=10MB/s
  penstock quota set --default client-id fetch=50MB/s request=200% --dry-run
  penstock quota explain --user alice --client-id loader
  penstock quota usage -w
  penstock quota unset --client-id loader produce""",
)
"""What the root calls for `penstock quota`."""
