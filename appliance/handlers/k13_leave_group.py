"""LeaveGroup, API key 13. Versions 0 to 5. 3: several members, with instance ids. 4: flexible. 5:
reason (KIP-800). Decided in `coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 13, "LeaveGroup", 0, 5)
