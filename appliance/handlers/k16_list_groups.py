"""ListGroups, API key 16. Versions 0 to 5. 3: flexible. 4: filter by state (KIP-518). 5: filter by
type (KIP-848). Decided in `coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 16, "ListGroups", 0, 5)
