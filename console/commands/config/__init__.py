"""`penstock config …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "config",
    package=__name__,
    table={
        "get": ("values:get", "Show values, with the place that each comes from."),
        "set": ("change:set_", "Change settings while the broker runs."),
        "unset": ("change:unset", "Let settings have their default again."),
        "list": ("values:list_", "Show what somebody has set."),
        "describe": ("values:describe", "Explain settings."),
        "reload": ("reload", "Let a running appliance read its settings file again."),
        "apply": ("apply:apply", "Make topics, settings and quotas as a file says."),
        "export": ("apply:export", "Print them as such a file."),
        "lint": ("file:lint", "Check a server.properties file."),
        "show": ("file:show", "Show what a server.properties file means."),
        "schema": ("schema", "Show every setting that there is."),
    },
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
  penstock config export > wished.toml
  penstock config apply wished.toml --dry-run
  penstock config lint server.properties
  penstock config reload""",
)
"""What the root calls for `penstock config`."""
