"""`penstock acl …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "acl",
    package=__name__,
    table={
        "list": ("list", "List ACLs."),
        "add": ("change:add", "Allow or deny operations."),
        "remove": ("change:remove", "Remove ACLs."),
        "import": ("import_list:import_list", "Add the ACLs that kafka-acls --list printed."),
        "can": ("decide:can", "Check whether a principal may do something, and why."),
        "who-can": ("decide:who_can", "Show who may do something, and why."),
    },
    aliases={"ls": "list", "create": "add", "rm": "remove", "delete": "remove"},
    help="Say who may do what, and ask whether a user may.",
    epilog="""\b
Examples:
  penstock acl add loader --producer --topic orders
  penstock acl add reader --consumer --topic orders --group billing
  penstock acl list --topic orders
  penstock acl import acls.txt
  penstock acl can loader write --topic orders
  penstock acl who-can delete --topic orders""",
)
"""What the root calls for `penstock acl`."""
