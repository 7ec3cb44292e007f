"""The handlers of the table of APIs (`authorization/apis.py`), by API key.

A network process plans most requests itself, by the file of the API in this folder. Coordinators
answer GROUPS and TRANSACTIONS, control and its quorum what is forwarded. The listeners of
controllers serve `controllers_handlers` alone.
"""

from importlib import import_module
from typing import Final

from appliance.authorization import apis
from appliance.authorization.apis import APIS, CLIENTS, CONTROLLERS, METADATA_FETCH, ApiRow
from appliance.base.ids import OFFSETS_TOPIC
from appliance.coordinators.groups.kind import GROUPS as GROUPS_KIND
from appliance.coordinators.transactions.kind import TRANSACTIONS as TRANSACTIONS_KIND
from appliance.handlers import (
    coordinate,
    forward,
    k01_fetch,
    k18_api_versions,
    k22_init_producer_id,
    k24_add_partitions_to_txn,
    k28_txn_offset_commit,
    k60_describe_cluster,
)
from appliance.handlers.exchange import Handler
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.handlers.group_changes import CHANGED
from appliance.handlers.legacy_versions import lower_handler

_FETCH: Final = 1
_KINDS: Final = {apis.GROUPS: GROUPS_KIND, apis.TRANSACTIONS: TRANSACTIONS_KIND}
_COORDINATED: Final[dict[int, Handler]] = {
    22: k22_init_producer_id.HANDLER,
    24: k24_add_partitions_to_txn.HANDLER,
    28: k28_txn_offset_commit.HANDLER,
}
"""Of those that coordinators decide: what has code here, too."""
_OTHERS: Final = {25: (OFFSETS_TOPIC,)}
"""Topics of another kind that are created before an API is asked for. AddOffsetsToTxn adds a
partition of committed offsets to the transaction."""


def _handler(row: ApiRow) -> Handler:
    if row.decided == apis.NETPROC:
        handler = import_module(f"appliance.handlers.{row.module}").HANDLER
        assert isinstance(handler, Handler), row.name
        return handler
    if row.decided in _KINDS:
        more = _OTHERS.get(row.key, ()), CHANGED.get(row.key)
        return _COORDINATED.get(row.key) or coordinate.handler(_KINDS[row.decided], row, *more)
    return forward.handler(row)


def _decided_by(where: str) -> tuple[Handler, ...]:
    return tuple(_handler(row) for row in APIS.values() if row.decided == where)


GROUPS: Final = _decided_by(apis.GROUPS)
TRANSACTIONS: Final = _decided_by(apis.TRANSACTIONS)
CONTROLLERS_ALONE: Final = tuple(
    forward.handler(row) for row in (METADATA_FETCH, *APIS.values()) if row.listeners == CONTROLLERS
)
"""What only controllers ask of each other, and brokers of their controller."""


def controllers_handlers() -> dict[int, Handler]:
    """Handlers by API key for the listeners of controllers."""
    cluster = k60_describe_cluster.FOR_CONTROLLERS
    both = [_handler(row) for row in APIS.values() if row.listeners == apis.BOTH and _plain(row)]
    return _with_versions([*CONTROLLERS_ALONE, *both, cluster])


def handlers(sessions: FetchSessions, *, legacy: bool = False) -> dict[int, Handler]:
    """Handlers by API key for one network process, for the listeners of clients and brokers.
    legacy: with the versions that Apache Kafka 4 gave up (penstock.legacy.protocol)."""
    plain = [_handler(row) for row in APIS.values() if row.listeners & CLIENTS and _plain(row)]
    every = [*plain, k01_fetch.handler(sessions), k60_describe_cluster.HANDLER]
    return _with_versions([lower_handler(row) for row in every] if legacy else every)


def _plain(row: ApiRow) -> bool:
    """False for the APIs whose handlers differ from process to process or by listener."""
    return row.key not in (_FETCH, k18_api_versions.KEY, k60_describe_cluster.HANDLER.key)


def _with_versions(rows: list[Handler]) -> dict[int, Handler]:
    """These, and ApiVersions, which tells of them."""
    ranges = [(row.key, advertised_lowest(row), row.highest) for row in rows]
    ranges.append((k18_api_versions.KEY, k18_api_versions.LOWEST, k18_api_versions.HIGHEST))
    rows.append(k18_api_versions.handler(ranges))
    return {row.key: row for row in rows}


def advertised_lowest(row: Handler) -> int:
    """The lowest version that ApiVersions tells of."""
    lowest = APIS[row.key].advertised
    return row.lowest if lowest is None else min(lowest, row.lowest)
