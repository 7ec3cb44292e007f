"""The page of settings: name, default, unit, range, whether it may be changed while the appliance
runs, meaning."""

from collections.abc import Iterable
from typing import Final

from appliance.config.broker_settings import BROKER, REMOVED
from appliance.config.metrics_settings import CLIENT_METRICS
from appliance.config.own_group_settings import GROUP
from appliance.config.setting import (
    CLUSTER_WIDE,
    PER_BROKER,
    READ_ONLY,
    TYPE_NAMES,
    Setting,
    shown,
)
from appliance.config.topic_settings import BROKER_SYNONYM, TOPIC
from appliance.config.units import unit_of
from pages.markdown import NOTE, code, plain, table

_CHANGE: Final = {READ_ONLY: "", PER_BROKER: "of one broker", CLUSTER_WIDE: "yes"}
_INTRO: Final = f"""\
# Settings

{NOTE}

They have Apache Kafka's names. `penstock up --config server.properties -o key=value` takes them,
`penstock config lint FILE` checks a file, `penstock config set` changes those that may be changed while it runs,
`penstock config describe` says what holds and where it comes from. A wrong value is refused with its range; a key that
nobody knows is warned about. What differs from Apache Kafka's defaults is said in the meaning.

Times and sizes may have a unit in a file, behind `-o` and in every command that changes settings: `7d`, `1h30m`,
`500ms` (us, ms, s, m, h, d, w), `10MB` and `1.5GB` (powers of 1000), `64MiB` (of 1024). What may be meant in two ways,
as `10M`, is refused with what to say instead. What is kept, and what every client is told, is the number in the *unit*
of the table; Kafka's own tools send that number, and a file that Apache Kafka shall read too has numbers in it
(`penstock config show FILE` prints them).

Those of TLS, which begin with `ssl.`, and `penstock.ssl.key.location`, may be set for one listener:
`listener.name.NAME.ssl.client.auth=required`, NAME in lower case. That wins over the setting of all listeners ([why
certificates are read as they are](../decisions/0092-certificates-are-read-by-us-and-read-again.md)).

*Changes*: whether it may be changed while the appliance runs: *yes*, for all brokers or one; *of one broker*, for each
alone; else at the next start.
"""


def text() -> str:
    """All of it, as Markdown."""
    own = [s for s in BROKER.values() if s.name.startswith("penstock.")]
    kafkas = [s for s in BROKER.values() if s not in own]
    groups = [row.setting for row in GROUP.values()]
    whole = (
        ("broker", BROKER.values()),
        ("topic", TOPIC.values()),
        ("group", groups),
        ("client metrics", CLIENT_METRICS.values()),
    )
    parts = [
        _INTRO,
        "## Penstock's own\n",
        _settings(own),
        "## Of the broker\n",
        _settings(kafkas),
        "## Of a topic\n\nEach may be changed while the appliance runs. *Broker's*: the setting of the broker that\nholds where the topic says nothing.\n",
        _topics(),
        "## Of a group\n\nEach may be changed while the appliance runs.\n",
        _short(s for s in groups if not s.inert),
        "## Known, without effect\n\nApache Kafka's, so that its files load and are checked.\n",
        table(
            ("name", "of", "why"),
            [
                (code(s.name), whose, plain(s.inert))
                for whose, some in whole
                for s in _sorted(some)
                if s.inert
            ],
        ),
        "## Gone since Kafka 4.0\n\nA start warns about them. One that ends in a dot stands for all that begin so.\n",
        table(("name", "instead"), [(code(k), plain(REMOVED[k])) for k in sorted(REMOVED)]),
    ]
    return "\n".join(parts)


def _range(s: Setting) -> str:
    if s.choices:
        return ", ".join(map(code, s.choices))
    if s.low is not None and s.high is not None:
        return f"{s.low} to {s.high}"
    if s.low is not None:
        return f"≥ {s.low}"
    return f"≤ {s.high}" if s.high is not None else ""


def _settings(some: Iterable[Setting]) -> str:
    return table(
        ("name", "type", "default", "unit", "range", "changes", "meaning"),
        [(*_first(s), _CHANGE[s.mode], plain(s.doc)) for s in _sorted(some) if not s.inert],
    )


def _topics() -> str:
    return table(
        ("name", "type", "default", "unit", "range", "broker's", "meaning"),
        [
            (*_first(s), code(BROKER_SYNONYM.get(s.name, "")), plain(s.doc))
            for s in _sorted(TOPIC.values())
            if not s.inert
        ],
    )


def _short(some: Iterable[Setting]) -> str:
    head = ("name", "type", "default", "unit", "range", "meaning")
    return table(head, [(*_first(s), plain(s.doc)) for s in _sorted(some)])


def _first(s: Setting) -> tuple[str, str, str, str, str]:
    default = "(hidden)" if s.sensitive and s.default else shown(s.default) or ""
    return code(s.name), TYPE_NAMES[s.type], code(default), unit_of(s), _range(s)


def _sorted(some: Iterable[Setting]) -> list[Setting]:
    return sorted(some, key=lambda s: s.name)
