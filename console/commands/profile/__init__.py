"""`penstock profile …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "profile",
    package=__name__,
    table={
        "list": ("named:list_", "List the profiles and mark the one in use."),
        "add": ("named:add", "Add or replace a named connection."),
        "use": ("named:use", "Select the profile that is used by default."),
        "remove": ("named:remove", "Remove a profile."),
    },
    aliases={"ls": "list", "rm": "remove", "delete": "remove"},
    help="""Manage named connections to several appliances.

    penstock --profile NAME, or PENSTOCK_PROFILE, selects the profile of a command; -b overrides it,
    and it overrides PENSTOCK_BOOTSTRAP. Commands that read an appliance of this host use the data
    folder of --data, else of -b, else of the profile.""",
    epilog="""\b
Examples:
  penstock profile add prod a.example.org:9092,b.example.org:9092
  penstock --profile prod topic list
  penstock profile use prod""",
)
"""What the root calls for `penstock profile`."""
