"""`penstock topic …`: the table of its commands."""

from typing import Final

from appliance.cli.root import LazyGroup, Table

_TABLE: Final[Table] = {
    "list": ("appliance.cli.topic_list", "List topics."),
    "describe": (
        "appliance.cli.topic_describe",
        "Show partitions, offsets and settings of topics.",
    ),
    "create": ("appliance.cli.topic_create", "Create topics."),
    "delete": ("appliance.cli.topic_delete", "Delete topics and their records."),
    "undelete": ("appliance.cli.topic_undelete", "Bring deleted topics back."),
    "config": ("appliance.cli.topic_config", "Get, set and unset settings of a topic."),
    "alter-config": ("appliance.cli.topic_alter_config", "Set and unset settings in one go."),
    "add-partitions": ("appliance.cli.topic_partitions", "Give a topic more partitions."),
    "trim": ("appliance.cli.topic_trim", "Delete the oldest records of a topic."),
    "produce": ("appliance.cli.produce", "Write records (also: penstock produce)."),
    "consume": ("appliance.cli.consume", "Read records (also: penstock consume)."),
}

command = LazyGroup(
    "topic",
    table=_TABLE,
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
  penstock topic trim orders -o 2h --dry-run""",
)
"""What the root calls for `penstock topic`."""
