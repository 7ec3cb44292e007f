"""`penstock profile …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "profile",
    package=__name__,
    table={
        "list": ("named:list_", "Show the profiles, and which one is in use."),
        "add": ("named:add", "Give an appliance or a cluster a name."),
        "use": ("named:use", "Let a profile hold when nothing is said."),
        "remove": ("named:remove", "Forget a profile."),
    },
    aliases={"ls": "list", "rm": "remove", "delete": "remove"},
    help="""Names of one's own for several appliances.

    penstock --profile NAME, or PENSTOCK_PROFILE, says which one a command is about; -b wins over
    it, and it over PENSTOCK_BOOTSTRAP. Commands that read an appliance of this host take the data
    folder of --data, else of -b, else the profile's.""",
    epilog="""\b
Examples:
  penstock profile add prod a.example.org:9092,b.example.org:9092
  penstock --profile prod topic list
  penstock profile use prod""",
)
"""What the root calls for `penstock profile`."""
