"""`penstock quota …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "quota",
    package=__name__,
    table={
        "list": ("list", "List quotas by entity."),
        "describe": ("list:describe", "Show the quotas of a client and the entity that sets each."),
        "explain": ("explain", "Show every quota rule for a client in order of precedence."),
        "set": ("change:set_", "Set quotas of users, client ids, addresses or defaults."),
        "unset": ("change:unset", "Remove quotas."),
        "usage": ("usage", "Show the current usage of quotas and who is throttled."),
    },
    aliases={"ls": "list", "info": "describe", "alter": "set", "rm": "unset", "delete": "unset"},
    help="Limit how much clients may produce, fetch, request, change and connect.",
    epilog="""\b
Examples:
  penstock quota set --client-id loader produce=10MB/s
  penstock quota set --default client-id fetch=50MB/s request=200% --dry-run
  penstock quota explain --user alice --client-id loader
  penstock quota usage -w
  penstock quota unset --client-id loader produce""",
)
"""What the root calls for `penstock quota`."""
