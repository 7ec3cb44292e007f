"""`penstock config …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "config",
    package=__name__,
    table={
        "get": ("values:get_settings", "Show values and where each comes from."),
        "set": ("change:set_", "Change settings while the broker runs."),
        "unset": ("change:unset", "Reset settings to their defaults."),
        "list": ("values:list_", "List the settings that differ from their defaults."),
        "describe": ("values:describe", "Explain settings."),
        "reload": ("reload", "Reload the settings file of a running appliance."),
        "apply": ("apply:apply", "Apply topics, settings and quotas from a file."),
        "export": ("apply:export", "Print topics, settings and quotas as such a file."),
        "lint": ("file:lint", "Check a server.properties file."),
        "show": ("file:show_file", "Show what a server.properties file means."),
        "schema": ("schema", "List every setting with type, default and range."),
    },
    aliases={"ls": "list", "info": "describe", "check": "lint"},
    help="""Show and change settings of brokers, the cluster, topics and groups.

    Without a target, reading shows the broker's settings and writing changes the default of all
    brokers. Only named settings change.""",
    epilog="""\b
Examples:
  penstock config list
  penstock config get log.retention.ms
  penstock config set log.retention.ms=86400000 --dry-run
  penstock config set retention.ms=86400000 -t orders
  penstock config describe flush.policy -t orders
  penstock config export > desired.toml
  penstock config apply desired.toml --dry-run
  penstock config lint server.properties
  penstock config reload""",
)
"""What the root calls for `penstock config`."""
