"""Heartbeat, API key 12. Versions 0 to 4. 3: group instance id. 4: flexible. Decided in
`coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 12, "Heartbeat", 0, 4)
