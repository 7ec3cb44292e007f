"""OffsetFetch, API key 9. Versions 1 to 10. 2: every topic when none are named. 5: leader epoch. 7:
require_stable. 8: several groups. 9: member id and epoch (KIP-848). 10: topic ids. Decided in
`coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 9, "OffsetFetch", 1, 10)
