"""-t, -g, --broker, --client-metrics, --loggers and --cluster: whose settings."""

import functools
from collections.abc import Callable
from typing import Any

import click

from console.flags.complete import group_names, topic_names
from console.model.asking.configs import BROKER, CLIENT_METRICS, GROUP, LOGGERS, TOPIC, Target
from console.model.asking.failure import usage


def targeted(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -t, -g, --broker, --client-metrics, --loggers and --cluster; the command gets `target`:
    a Target, or None."""

    @click.option(
        "-t", "--topic", metavar="NAME", help="Settings of this topic.", shell_complete=topic_names
    )
    @click.option(
        "-g",
        "--group",
        metavar="NAME",
        help="Settings of this consumer group.",
        shell_complete=group_names,
    )
    @click.option("--broker", metavar="ID", help="Settings of this broker only.")
    @click.option(
        "--client-metrics", metavar="NAME", help="Settings of this client metrics subscription."
    )
    @click.option("--loggers", metavar="ID", help="Log levels of this broker's loggers.")
    @click.option("--cluster", is_flag=True, help="The cluster-wide default of all brokers.")
    @functools.wraps(command)
    def wrapped(
        *args: object,
        topic: str | None,
        group: str | None,
        broker: str | None,
        client_metrics: str | None,
        loggers: str | None,
        cluster: bool,
        **kwargs: object,
    ) -> object:
        named = [
            (TOPIC, topic),
            (GROUP, group),
            (BROKER, broker),
            (CLIENT_METRICS, client_metrics),
            (LOGGERS, loggers),
            (BROKER, "" if cluster else None),
        ]
        found = [Target(kind, name) for kind, name in named if name is not None]
        if len(found) > 1 or any(not one.name for one in found if not cluster):
            raise usage(
                "say one of -t TOPIC, -g GROUP, --broker ID, --client-metrics NAME, --loggers ID,"
                " --cluster"
            )
        return command(*args, target=found[0] if found else None, **kwargs)

    return wrapped
