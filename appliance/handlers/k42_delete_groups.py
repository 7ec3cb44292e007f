"""DeleteGroups, API key 42. Versions 0 to 2. 2: flexible. Decided in `coordinators`."""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 42, "DeleteGroups", 0, 2)
