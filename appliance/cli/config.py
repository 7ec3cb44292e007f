"""`penstock config …`: the table of its commands."""

from typing import Final

from appliance.cli.root import LazyGroup, Table

_TABLE: Final[Table] = {
    "get": ("appliance.cli.config_get", "Show values, with the place that each comes from."),
    "set": ("appliance.cli.config_set", "Change settings while the broker runs."),
    "unset": ("appliance.cli.config_unset", "Let settings have their default again."),
    "list": ("appliance.cli.config_list", "Show what somebody has set."),
    "describe": ("appliance.cli.config_describe", "Explain settings."),
    "lint": ("appliance.cli.config_lint", "Check a server.properties file."),
    "show": ("appliance.cli.config_show", "Show what a server.properties file means."),
    "schema": ("appliance.cli.config_schema", "Show every setting that there is."),
}

command = LazyGroup(
    "config",
    table=_TABLE,
    aliases={"ls": "list", "info": "describe", "check": "lint"},
    help="""Get and set the settings of the broker, of the cluster, of topics and of groups.

    Without a target, what is read is the broker, and what is changed is the default of all
    brokers. Only the settings that are named change.""",
    epilog="""\b
Examples:
  penstock config list
  penstock config get log.retention.ms
  penstock config set log.retention.ms=86400000 --dry-run
  penstock config set retention.ms=86400000 -t orders
  penstock config describe flush.policy -t orders
  penstock config lint server.properties""",
)
"""What the root calls for `penstock config`."""
