"""Every API that control answers, by key."""

from importlib import import_module
from typing import Final

from appliance.authorization.apis import APIS as TABLE
from appliance.authorization.apis import CONTROL, ApiRow
from appliance.handlers.admin import Api

_INIT_PRODUCER_ID: Final = 22
"""Coordinators decide it for producers with a transactional id, control for all others."""


def _api(row: ApiRow) -> Api:
    api = import_module(f"appliance.handlers.{row.module}").API
    assert isinstance(api, Api), row.name
    return api


APIS: Final[dict[int, Api]] = {
    row.key: _api(row)
    for row in TABLE.values()
    if row.decided == CONTROL or row.key == _INIT_PRODUCER_ID
}
