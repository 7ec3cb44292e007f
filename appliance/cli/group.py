"""`penstock group …`: the table of its commands."""

from typing import Final

from appliance.cli.root import LazyGroup, Table

_TABLE: Final[Table] = {
    "list": ("appliance.cli.group_list", "List consumer groups."),
    "describe": ("appliance.cli.group_describe", "Show where groups are, and who reads what."),
    "members": ("appliance.cli.group_members", "Show the members of groups."),
    "lag": ("appliance.cli.group_lag", "Show how far groups are behind, in records and seconds."),
    "seek": ("appliance.cli.group_seek", "Move the committed offsets of a group."),
    "delete": ("appliance.cli.group_delete", "Delete groups and their committed offsets."),
    "delete-offsets": ("appliance.cli.group_offsets", "Delete committed offsets of topics."),
}

command = LazyGroup(
    "group",
    table=_TABLE,
    aliases={
        "ls": "list",
        "info": "describe",
        "rm": "delete",
        "reset-offsets": "seek",
        "reset": "seek",
        "offset-delete": "delete-offsets",
    },
    help="Inspect consumer groups, move and delete their committed offsets.",
    epilog="""\b
Examples:
  penstock group list -o wide
  penstock group describe billing
  penstock group lag billing -w
  penstock group seek billing --to 2h -t orders --dry-run
  penstock group seek billing --to-group reports --yes""",
)
"""What the root calls for `penstock group`."""
