"""The page of APIs: keys, names, versions and who answers, as the table of APIs has them."""

from typing import Final

from kio.schema.index import api_key_map

from appliance.authorization.apis import APIS
from appliance.handlers import registry
from appliance.handlers.exchange import Handler
from appliance.handlers.fetch_sessions import FetchSessions
from pages.markdown import NOTE, table

_KAFKAS: Final = 93
"""Apache Kafka 4.3 has API keys below this one; a newer kio may know of more."""
_INTRO: Final = f"""\
# APIs

{NOTE}

What ApiVersions tells clients, by API key. A client asks in a version that both know. Where an answer differs from
Apache Kafka's on purpose, [differences](../differences.md) says so.
"""
_LISTENERS: Final = """\
## On the listeners of controllers

What nodes of a cluster ask of its controllers; Fetch is that of the metadata log.
"""
_NOT_SERVED: Final = """\
## Not served

Known to Apache Kafka, not advertised here: they are for share and streams groups.
"""


def text() -> str:
    """All of it, as Markdown."""
    clients = registry.handlers(FetchSessions(1, lambda: 0))
    controllers = registry.controllers_handlers()
    head = ("key", "name", "versions", "answered by")
    missing = [
        (str(key), "".join(word.capitalize() for word in name.split("_")))
        for key, name in sorted(api_key_map.items())
        if key < _KAFKAS and key not in clients and key not in controllers
    ]
    return "\n".join(
        (
            _INTRO,
            table(head, [(*_api(row), _who(row)) for _, row in sorted(clients.items())]),
            _LISTENERS,
            table(head[:3], [_api(row) for _, row in sorted(controllers.items())]),
            _NOT_SERVED,
            table(head[:2], missing),
        )
    )


def _api(row: Handler) -> tuple[str, str, str]:
    lowest = registry.advertised_lowest(row)
    versions = str(lowest) if lowest == row.highest else f"{lowest} to {row.highest}"
    return str(row.key), row.name, versions


def _who(row: Handler) -> str:
    return APIS[row.key].decided
