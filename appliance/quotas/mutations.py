"""How many changes of the metadata a client may make: controller_mutation_rate (KIP-599).

A request's permit is asked for each topic it creates, deletes or enlarges, with the number of
partitions this touches. Versions that know the error are refused when the bucket is in debt; older
ones are always allowed and paused afterwards. Called by control, whose region counts all of them.
"""

from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.quotas.meters import Meters

STRICT_SINCE: Final = {19: 6, 20: 5, 37: 3}
"""API key → first version that is refused with THROTTLING_QUOTA_EXCEEDED."""


class Permit:
    """One request's right to change the metadata. pause_ms: what its answer has to tell."""

    __slots__ = ("_client_id", "_meters", "_now_ms", "_strict", "_user", "pause_ms")

    def __init__(
        self, meters: Meters, user: str, client_id: str, strict: bool, now_ms: int
    ) -> None:
        self._meters = meters
        self._user = user
        self._client_id = client_id
        self._strict = strict
        self._now_ms = now_ms
        self.pause_ms = 0

    def __call__(self, partitions: int) -> None:
        """Count so many partitions. Raises PeerError (THROTTLING_QUOTA_EXCEEDED)."""
        allowed, pause_ms = self._meters.take_tokens(
            self._user, self._client_id, partitions, self._now_ms, self._strict
        )
        self.pause_ms = max(self.pause_ms, pause_ms)
        if not allowed:
            raise PeerError(
                errors.THROTTLING_QUOTA_EXCEEDED,
                "The throttling quota has been exceeded: controller_mutation_rate of this client"
                f" allows more in {pause_ms} ms.",
            )
