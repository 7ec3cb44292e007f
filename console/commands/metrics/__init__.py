"""`penstock metrics …`: the table of its commands."""

from console.root import LazyGroup

command = LazyGroup(
    "metrics",
    package=__name__,
    table={
        "list": ("list", "List the exported metrics and their meaning."),
        "rules": ("text:rules", "Print alert rules for Prometheus."),
        "board": ("text:board", "Print a dashboard for Grafana."),
        "page": ("text:page", "Print docs/metrics.md."),
    },
    aliases={"ls": "list"},
    help="Show the metrics for Prometheus, alert rules and a dashboard.",
    epilog="""\b
Examples:
  penstock up -o penstock.metrics.listener=localhost:9404
  penstock metrics list
  penstock metrics rules > penstock.rules.yml
  penstock metrics board > penstock.json""",
)
"""What the root calls for `penstock metrics`."""
