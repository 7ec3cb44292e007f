"""Heartbeat, API key 12. Versions 0 to 4. 3: group instance id. 4: flexible. Decided in
`coordinators`.
"""

from appliance.handlers import coordinate

HANDLER = coordinate.handler(12, "Heartbeat", 0, 4)
