"""DeleteGroups, API key 42. Versions 0 to 2. 2: flexible. Decided in `coordinators`."""

from appliance.handlers import coordinate

HANDLER = coordinate.handler(42, "DeleteGroups", 0, 2)
