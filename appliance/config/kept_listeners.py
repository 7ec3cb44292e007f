"""Listeners that were set while the node served: they stand in its metadata, as every dynamic
setting, and beside its identity too, because a node must know where others reach it before it has
read any metadata.

Invariant: what is kept has been checked, and takes the place of the same settings of the node's own
file and command line, as dynamic settings do.
"""

from collections.abc import Callable, Mapping
from typing import Final

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import ConfigError
from appliance.config import between_nodes, cluster_checks, open_listeners, several_listeners
from appliance.config.broker import DEFAULT, BrokerConfig
from appliance.config.listeners import EVERYWHERE, Endpoint, in_url, parse_endpoint
from appliance.config.properties import parse_properties

KEPT: Final = "listeners.properties"
LISTENERS: Final = "listeners"
_TOLD: Final = "advertised.listeners"
PROTOCOLS: Final = "listener.security.protocol.map"
OPENING: Final[tuple[str, ...]] = (LISTENERS, open_listeners.SETTING)
KEYS: Final[tuple[str, ...]] = (*OPENING, PROTOCOLS)


def read(disk: Disk, folder: str) -> dict[str, str]:
    """Reads the kept listeners of a data folder. Raises StorageFailed."""
    path = f"{folder}/{KEPT}"
    if not disk.exists(path):
        return {}
    text = read_file(disk, path).decode(errors="replace")
    return {key: value for key, value, _ in parse_properties(text) if key in KEYS}


def write_listeners(disk: Disk, folder: str, texts: Mapping[str, str]) -> None:
    """Keep these. Raises StorageFailed."""
    lines = [f"{key}={text}\n" for key, text in texts.items()]
    write_file(disk, f"{folder}/{KEPT}", "".join(lines).encode())


def over(own: BrokerConfig, texts: Mapping[str, str], host: Callable[[], str]) -> BrokerConfig:
    """A node's own settings with these on top. host(): as for `BrokerConfig.telling`. Raises
    ConfigError."""
    return own.over(texts).telling(host) if texts else own


def check_open(own: BrokerConfig, kept: BrokerConfig) -> None:
    """Raises ConfigError where the kept listeners are open without authentication and no setting
    allows it. An SSL listener that the node's own settings do not name has its `ssl.client.auth` in
    the metadata, which a start does not know yet: the change that opened it was checked."""
    if kept is own or kept.text(open_listeners.SETTING) == open_listeners.ALLOW:
        return
    named, protocols = {one.name for one in own.opened()}, kept.protocols()
    found = [
        one
        for one in open_listeners.find_open(kept)
        if one.name in named or protocols.get(one.name) == "PLAINTEXT"
    ]
    if found:
        raise ConfigError(f"{KEPT} of the data folder: {open_listeners.refusal(kept, found)}")


def left_out(own: BrokerConfig, kept: BrokerConfig) -> list[str]:
    """Listeners that somebody set for this start, and that are not opened because of what is
    kept."""
    entry, opened = own.entry("listeners"), kept.opened()
    if entry is None or entry.source == DEFAULT:
        return []
    return [_text(one) for one in own.opened() if not any(_covers(other, one) for other in opened)]


def check(config: BrokerConfig, before: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Checks that a broker may get these listeners while it serves. config: its settings, as far as
    they are known. before: what was set so of it. Raises ConfigError.

    The listeners by which other nodes come stay, at the same address or another: the others are
    told of that. One that `advertised.listeners` names stays, and so does the protocol of one that
    is open before and after, as in Apache Kafka."""
    own = config.static()
    old, wanted = (own.over({one: texts[one] for one in KEYS if one in texts})
                   for texts in (before, new))  # fmt: skip
    opened = wanted.opened()
    names = {one.name for one in opened}
    nodes = between_nodes.to_brokers(old).listener if old.several and old.is_broker else ""
    for one in old.opened():
        if one.name not in names and (old.is_controllers(one.name) or one.name == nodes):
            raise ConfigError(
                f"listeners: {_text(one)} must stay, because the other nodes reach this one there"
            )
    told = [parse_endpoint(_TOLD, text).name for text in _told_by(own)]
    if gone := [one.name for one in old.opened() if one.name in told and one.name not in names]:
        raise ConfigError(
            f"listeners: {', '.join(gone)} must stay, because {_TOLD} names it: Advertised"
            " listeners must be a subset of listeners"
        )
    _check_protocols(old, wanted)
    list(several_listeners.check(wanted))
    list(cluster_checks.voters(wanted))
    list(cluster_checks.advertised(wanted.telling(lambda: "host")))
    for one in opened:
        if not one.port and one not in old.opened():
            raise ConfigError(f"listeners: {_text(one)} needs a port that others know, not 0")


def _check_protocols(old: BrokerConfig, wanted: BrokerConfig) -> None:
    spoken, now = old.protocols(), wanted.protocols()
    open_before = {one.name for one in old.opened()}
    for one in wanted.opened():
        name = one.name
        if name in open_before and name in now and spoken.get(name) != now[name]:
            raise ConfigError(
                f"{PROTOCOLS}: Security protocol cannot be updated for existing listener {name}:"
                f" it speaks {spoken.get(name)}; open another listener with {now[name]}, and close"
                " this one"
            )


def _told_by(own: BrokerConfig) -> tuple[str, ...]:
    """advertised.listeners as somebody set them."""
    entry = own.entry(_TOLD)
    return () if entry is None or entry.source == DEFAULT else own.list(_TOLD)


def _covers(one: Endpoint, other: Endpoint) -> bool:
    return one.port == other.port and one.host in (*EVERYWHERE, other.host)


def _text(one: Endpoint) -> str:
    return f"{one.name}://{in_url(one.host)}:{one.port}"
