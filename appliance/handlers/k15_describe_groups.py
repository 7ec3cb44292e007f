"""DescribeGroups, API key 15. Versions 0 to 6. 3: authorized operations. 4: instance ids. 5:
flexible. 6: GROUP_ID_NOT_FOUND for a group that is not there (KIP-1043). Decided in
`coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 15, "DescribeGroups", 0, 6)
