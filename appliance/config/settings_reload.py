"""A settings file that was read again, against what is in force: what has changed, what of it holds
from now on, what waits for a restart. A value machine.

A setting may change while the broker runs if Kafka lets it be changed dynamically, or if it is only
another name of such ones (`log.retention.hours` of `log.retention.ms`), if it has no effect, or if
it concerns the exporter alone, TLS or logins, of which everything is read again.
Listeners are opened while it runs by those who ask the controller for them, not by a file.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from appliance.config import metrics_door
from appliance.config.broker import BrokerConfig, Entry
from appliance.config.broker_settings import BROKER
from appliance.config.kept_listeners import LISTENERS, PROTOCOLS
from appliance.config.listener_settings import declared, is_tls
from appliance.config.logins import concerns_logins
from appliance.config.setting import READ_ONLY, shown

METRICS_LISTENER: Final = metrics_door.LISTENER
EXPORTERS: Final = frozenset(
    (
        *(METRICS_LISTENER, metrics_door.PROTOCOL, metrics_door.BASIC),
        *("penstock.metrics.partitions.max", "penstock.metrics.topics.max"),
        *("penstock.otlp.endpoint", "penstock.otlp.interval.ms", "penstock.otlp.headers"),
    )
)
"""Settings of the process that tells metrics: nobody waits for it, so another one takes its place
that has the new ones."""

Entries = Mapping[str, Entry | None]
"""Settings by name; None: nobody sets it any more."""

HIDDEN: Final = "(hidden)"


class Changed(NamedTuple):
    """One setting. before, after: its values for people, those of secrets hidden. at_once: it holds
    without a restart."""

    key: str
    before: str
    after: str
    at_once: bool

    def __str__(self) -> str:
        return f"{self.key}: {self.before} → {self.after}"


def changes_at_once(key: str) -> bool:
    """True if a new value of this setting needs no restart."""
    setting = declared(key)
    if key in (LISTENERS, PROTOCOLS):
        return False
    if key in EXPORTERS or is_tls(key) or concerns_logins(key):
        return True
    if setting.inert or setting.mode != READ_ONLY:
        return True
    others = [one for one in BROKER.values() if key in (name for name, _ in one.synonyms)]
    return bool(others) and all(one.mode != READ_ONLY for one in others)


def compare(old: BrokerConfig, new: BrokerConfig) -> list[Changed]:
    """Returns the changed settings, by name."""
    found = []
    for key in sorted({*old.set_names(), *new.set_names()}):
        before, after = old.get_value(key), new.get_value(key)
        if before != after:
            hide = declared(key).sensitive
            values = [HIDDEN if hide else shown(value) or "" for value in (before, after)]
            found.append(Changed(key, values[0], values[1], changes_at_once(key)))
    return found


def taken(new: BrokerConfig, changes: Sequence[Changed]) -> dict[str, Entry | None]:
    """Returns the entries in force after a reload."""
    return {one.key: new.entry(one.key) for one in changes if one.at_once}


def encode(entries: Entries) -> bytes:
    """For another process."""
    texts = {
        key: None if entry is None else [entry.text, entry.source] for key, entry in entries.items()
    }
    return json.dumps(texts).encode()


def decode(encoded: bytes) -> dict[str, Entry | None]:
    """Decodes the bytes of `encode`."""
    found: dict[str, Entry | None] = {}
    for key, said in json.loads(encoded).items():
        found[key] = None if said is None else Entry(declared(key).parse(said[0]), *said)
    return found
