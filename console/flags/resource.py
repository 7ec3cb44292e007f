"""--topic, --group and the like: what ACLs are about."""

import functools
from collections.abc import Callable
from typing import Any

import click

from appliance.authorization import operations as kafka
from appliance.authorization.standard import LITERAL, PREFIXED
from console.flags.complete import group_names, topic_names
from console.model.access.acls import Target, principal_of
from console.model.asking.failure import usage


def resource_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags; the command gets `targets`, empty when none was given."""

    @click.option(
        "-t", "--topic", "topics", metavar="TOPIC", multiple=True, shell_complete=topic_names,
        help="A topic; may be repeated. * means all.",
    )  # fmt: skip
    @click.option(
        "-g", "--group", "groups", metavar="GROUP", multiple=True, shell_complete=group_names,
        help="A consumer group; may be repeated.",
    )  # fmt: skip
    @click.option(
        "--transactional-id", "ids", metavar="ID", multiple=True,
        help="A transactional id; may be repeated.",
    )  # fmt: skip
    @click.option(
        "--user", "--user-principal", "users", metavar="USER", multiple=True,
        help="A user, whose delegation tokens it is about; may be repeated.",
    )  # fmt: skip
    @click.option(
        "--delegation-token", "tokens", metavar="ID", multiple=True,
        help="A delegation token; may be repeated.",
    )  # fmt: skip
    @click.option("--cluster", is_flag=True, help="The cluster itself.")
    @click.option(
        "--prefixed", "--prefix", is_flag=True,
        help="The names are prefixes: the ACL holds for all names that begin so.",
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(
        *args: object,
        topics: tuple[str, ...],
        groups: tuple[str, ...],
        ids: tuple[str, ...],
        users: tuple[str, ...],
        tokens: tuple[str, ...],
        cluster: bool,
        prefixed: bool,
        **kwargs: object,
    ) -> object:
        named = {
            kafka.TOPIC: topics, kafka.GROUP: groups, kafka.TRANSACTIONAL_ID: ids,
            kafka.USER: tuple(one if one in ("", "*") else principal_of(one) for one in users),
            kafka.DELEGATION_TOKEN: tokens,
        }  # fmt: skip
        pattern = PREFIXED if prefixed else LITERAL
        targets = [Target(kind, name, pattern) for kind, names in named.items() for name in names]
        if any(not one.name for one in targets):
            raise usage("a name is empty", "* means all")
        if prefixed and not targets:
            raise usage("--prefixed needs a name, for example --topic orders. --prefixed")
        if cluster:
            targets.append(Target(kafka.CLUSTER, kafka.CLUSTER_NAME))
        return command(*args, targets=tuple(targets), **kwargs)

    return wrapped


def only_one(targets: tuple[Target, ...]) -> Target:
    """The one resource that was named. Raises Failure (USAGE)."""
    if len(targets) != 1:
        raise usage(
            "name one resource: --topic, --group, --transactional-id, --user, --delegation-token or"
            " --cluster"
        )
    return targets[0]
