"""OffsetCommit, API key 8. Versions 2 to 10. 5: no retention time any more. 6: leader epoch. 7:
group instance id. 9: member epochs, GROUP_ID_NOT_FOUND (KIP-848). 10: topic ids. Decided in
`coordinators`.
"""

from appliance.coordinators.groups.kind import GROUPS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(GROUPS, 8, "OffsetCommit", 2, 10)
