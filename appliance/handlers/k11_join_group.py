"""JoinGroup, API key 11. Versions 0 to 9. 1: rebalance timeout. 4: a new member is given its id
first (KIP-394). 5: group instance id (KIP-345). 7: protocol type. 8: reason. 9: skip_assignment
(KIP-814). Decided in `coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 11, "JoinGroup", 0, 9)
