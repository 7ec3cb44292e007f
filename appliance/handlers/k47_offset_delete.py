"""OffsetDelete, API key 47. Version 0 (KIP-496). Decided in `coordinators`."""

from appliance.handlers import coordinate

HANDLER = coordinate.handler(47, "OffsetDelete", 0, 0)
