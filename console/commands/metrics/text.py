"""`penstock metrics rules`, `board` and `page`: texts made of the declarations, to stdout."""

import click

from console.model.asking.failure import OK


@click.command("rules")
def rules() -> int:
    """Print a file of alert rules for Prometheus.

    \b
    penstock metrics rules > penstock.rules.yml
    """
    from console.model.monitoring import rules as made

    print(made.text(), end="")
    return OK


@click.command("board")
def board() -> int:
    """Print a dashboard to import into Grafana.

    \b
    penstock metrics board > penstock.json
    """
    from console.model.monitoring import board as made

    print(made.text(), end="")
    return OK


@click.command("page")
def page() -> int:
    """Print the page about metrics, as Markdown.

    \b
    penstock metrics page > docs/metrics.md
    """
    from console.model.monitoring import page as made

    print(made.text(), end="")
    return OK
