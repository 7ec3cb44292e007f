"""Names of topics, groups and settings for the shell: who presses TAB waits for 150 ms at most, and
gets no names when the broker does not answer in that time."""

from collections.abc import Callable
from typing import Any, Final

import click

_LIMIT_S: Final = 0.15


def topic_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin so; internal ones only for who types their first letters."""
    from console.model.asking import names

    found = _asked(ctx, names.topics)
    shown = incomplete.startswith("__")
    return [n for n in found if n.startswith(incomplete) and (shown or not n.startswith("__"))]


def group_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin so."""
    from console.model.asking import names

    return [name for name in _asked(ctx, names.groups) if name.startswith(incomplete)]


def transactional_ids(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin so."""
    from console.model.asking import names

    return [name for name in _asked(ctx, names.transactional_ids) if name.startswith(incomplete)]


def topic_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of settings of topics that begin so."""
    from appliance.config.topic_settings import TOPIC

    return [name for name in sorted(TOPIC) if name.startswith(incomplete)]


def setting_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of settings that begin so: of topics after -t, of groups after -g, else of the
    broker."""
    if ctx.params.get("topic"):
        return topic_settings(ctx, param, incomplete)
    if ctx.params.get("group"):
        from appliance.config.own_group_settings import GROUP

        known = sorted(GROUP)
    else:
        from appliance.config.broker_settings import BROKER

        known = sorted(BROKER)
    return [name for name in known if name.startswith(incomplete)]


def _asked(ctx: click.Context, ask: Callable[..., list[str]]) -> list[str]:
    from console.flags.connection import key_values
    from console.model.asking.failure import Failure
    from console.model.asking.profiles import properties_of, where
    from penstock.door import Door

    named: Any = ctx.find_root().params.get("profile")
    try:
        meant = where(ctx.params.get("bootstrap"), named)
        said = properties_of(ctx.params.get("command_config") or meant.command_config)
        said |= key_values(ctx.params.get("properties") or (), "-X")
    except Failure:  # TAB says nothing; the command will
        return []
    return ask(meant.bootstrap.split(",")[0], _LIMIT_S, Door(said))
