"""ConsumerGroupDescribe, API key 69. Versions 0 and 1 (KIP-848); flexible from 0. 1: how each
member speaks (KIP-1099). Decided in `coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 69, "ConsumerGroupDescribe", 0, 1)
