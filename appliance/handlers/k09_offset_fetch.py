"""OffsetFetch, API key 9. Versions 1 to 10. 2: every topic when none are named. 5: leader epoch. 7:
require_stable. 8: several groups. 9: member id and epoch (KIP-848). 10: topic ids. Decided in
`coordinators`.
"""

from appliance.handlers import coordinate

HANDLER = coordinate.handler(9, "OffsetFetch", 1, 10)
