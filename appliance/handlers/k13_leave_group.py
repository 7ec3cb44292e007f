"""LeaveGroup, API key 13. Versions 0 to 5. 3: several members, with instance ids. 4: flexible. 5:
reason (KIP-800). Decided in `coordinators`.
"""

from appliance.handlers import coordinate

HANDLER = coordinate.handler(13, "LeaveGroup", 0, 5)
