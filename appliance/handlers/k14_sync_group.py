"""SyncGroup, API key 14. Versions 0 to 5. 3: group instance id. 4: flexible. 5: protocol type and
name (KIP-559). Decided in `coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 14, "SyncGroup", 0, 5)
