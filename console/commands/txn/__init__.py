"""`penstock txn …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "txn",
    package=__name__,
    table={
        "list": ("list", "List transactional ids and their states."),
        "describe": ("describe", "Show a transaction and the records it holds back."),
        "hanging": ("hanging", "Find hanging transactions."),
        "abort": ("abort", "Abort an open or hanging transaction."),
    },
    aliases={
        "ls": "list",
        "info": "describe",
        "find-hanging": "hanging",
        "force-terminate": "abort",
    },
    help="Inspect open transactions and the records they hold back; abort them.",
    epilog="""\b
Examples:
  penstock txn list --open -o wide
  penstock txn describe copier
  penstock txn hanging
  penstock txn abort copier --dry-run
  penstock txn abort -t orders:0 --start 4711""",
)
"""What the root calls for `penstock txn`."""
