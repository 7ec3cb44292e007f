"""How many topics one client may have created by naming them, in a minute.

One Metadata request can name as many topics as there may be partitions. A client is a principal at
an address: client ids are what it says itself. Each has a bucket of topics, full at the beginning,
into which the setting's number comes back in a minute. Caller: `admin_requests.py`.
"""

from typing import Final

from appliance.base.caller import Caller
from appliance.base.clock import Clock

SETTING: Final = "penstock.topic.auto.create.max.per.minute"
_CLIENTS: Final = 4096
"""Buckets that are kept; those that are full again go first."""
_MINUTE_NS: Final = 60_000_000_000

_Client = tuple[str, str]


class AutoCreations:
    """Counts them; a value machine but for its clock."""

    __slots__ = ("_clock", "_used")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used: dict[_Client, tuple[float, int]] = {}  # what is missing from it, as of when

    def admit(self, caller: Caller, most: int) -> bool:
        """Count one more topic of this caller, at most so many a minute. Return False if it may
        have none just now."""
        now_ns = self._clock.monotonic_ns()
        client = caller.principal.name, caller.address
        used, since_ns = self._used.get(client, (0.0, now_ns))
        used = max(0.0, used - (now_ns - since_ns) * most / _MINUTE_NS)
        if used + 1 > most:
            return False
        if client not in self._used and len(self._used) >= _CLIENTS:
            self._drop_full(now_ns, most)
        self._used[client] = used + 1, now_ns
        return True

    def _drop_full(self, now_ns: int, most: int) -> None:
        rate = most / _MINUTE_NS
        self._used = {
            client: row for client, row in self._used.items() if row[0] > (now_ns - row[1]) * rate
        }
        while len(self._used) >= _CLIENTS:
            del self._used[next(iter(self._used))]
