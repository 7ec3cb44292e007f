"""OffsetDelete, API key 47. Version 0 (KIP-496). Decided in `coordinators`."""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 47, "OffsetDelete", 0, 0)
