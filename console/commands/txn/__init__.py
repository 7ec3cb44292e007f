"""`penstock txn …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "txn",
    package=__name__,
    table={
        "list": ("list", "List transactional ids and what they do."),
        "describe": ("describe", "Show a transaction, and what it holds back."),
        "hanging": ("hanging", "Find transactions that nobody ends."),
        "abort": ("abort", "Abort an open transaction, or one that hangs."),
    },
    aliases={
        "ls": "list",
        "info": "describe",
        "find-hanging": "hanging",
        "force-terminate": "abort",
    },
    help="See open transactions and what they hold back; abort them.",
    epilog="""\b
Examples:
  penstock txn list --open -o wide
  penstock txn describe copier
  penstock txn hanging
  penstock txn abort copier --dry-run
  penstock txn abort -t orders:0 --start 4711""",
)
"""What the root calls for `penstock txn`."""
