"""`penstock group …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "group",
    package=__name__,
    table={
        "list": ("list", "List consumer groups."),
        "describe": ("describe", "Show members, committed offsets and lag of groups."),
        "members": ("describe:members", "Show the members of groups."),
        "lag": ("lag", "Show the lag of groups in records and seconds."),
        "seek": ("seek", "Reset the committed offsets of a group."),
        "delete": ("delete", "Delete groups and their committed offsets."),
        "delete-offsets": ("delete:offsets", "Delete committed offsets of topics."),
        "remove-member": ("remove_member", "Remove members from a group."),
    },
    aliases={
        "ls": "list",
        "info": "describe",
        "rm": "delete",
        "reset-offsets": "seek",
        "reset": "seek",
        "offset-delete": "delete-offsets",
    },
    help="Inspect consumer groups, reset and delete their committed offsets.",
    epilog="""\b
Examples:
  penstock group list -o wide
  penstock group describe billing
  penstock group lag billing -w
  penstock group seek billing --to 2h -t orders --dry-run
  penstock group seek billing --to-group reports --yes""",
)
"""What the root calls for `penstock group`."""
