"""`penstock topic …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "topic",
    package=__name__,
    table={
        "list": ("list", "List topics."),
        "describe": ("describe", "Show partitions, offsets and settings of topics."),
        "create": ("create", "Create topics."),
        "delete": ("delete", "Delete topics and their records."),
        "undelete": ("delete:undelete", "Restore deleted topics."),
        "config": ("config", "Get, set and unset settings of a topic."),
        "alter-config": ("config:alter", "Set and unset settings in one request."),
        "add-partitions": ("add_partitions", "Add partitions to a topic."),
        "replicas": ("replicas", "Show and change the replica assignment of a topic."),
        "archive": ("archive", "Copy a topic to a folder or a bucket."),
        "restore": (
            "archive:restore",
            "Put an archived topic into a stopped appliance.",
        ),
        "trim": ("trim", "Delete the oldest records of a topic."),
        "table": ("table", "Write the job file that keeps a topic as a table."),
        "produce": (".produce", "Write records (also: penstock produce)."),
        "consume": (".consume", "Read records (also: penstock consume)."),
    },
    aliases={
        "ls": "list",
        "info": "describe",
        "rm": "delete",
        "trim-prefix": "trim",
        "configs": "config",
    },
    help="Create, inspect, change and delete topics.",
    epilog="""\b
Examples:
  penstock topic create orders -p 3 -c retention.ms=86400000
  penstock topic list -o json
  penstock topic describe orders -a
  penstock topic trim orders -o 2h --dry-run
  penstock topic archive orders s3://bucket/topics
  penstock topic table orders lake""",
)
"""What the root calls for `penstock topic`."""
