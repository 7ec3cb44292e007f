"""`penstock quota …`: the table of its commands."""

from typing import Final

from appliance.cli.root import LazyGroup, Table

_TABLE: Final[Table] = {
    "list": ("appliance.cli.quota_list", "List quotas and whose they are."),
    "describe": ("appliance.cli.quota_describe", "Show which quotas hold for a client, and why."),
    "set": ("appliance.cli.quota_set", "Set quotas of users, client ids, addresses or defaults."),
    "unset": ("appliance.cli.quota_unset", "Take quotas away."),
    "usage": ("appliance.cli.quota_usage", "Show how much is used now, and who is throttled."),
}

command = LazyGroup(
    "quota",
    table=_TABLE,
    aliases={"ls": "list", "info": "describe", "alter": "set", "rm": "unset", "delete": "unset"},
    help="Say how much clients may send, read, ask, change and connect.",
    epilog="""\b
Examples:
  penstock quota set --client-id loader produce=10MB/s
  penstock quota set --default client-id fetch=50MB/s request=200% --dry-run
  penstock quota describe --user alice --client-id loader
  penstock quota usage -w
  penstock quota unset --client-id loader produce""",
)
"""What the root calls for `penstock quota`."""
