"""ConsumerGroupHeartbeat, API key 68. Versions 0 and 1 (KIP-848); flexible from 0. 1: regular
expressions, member ids from the client (KIP-1082). Decided in `coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 68, "ConsumerGroupHeartbeat", 0, 1)
