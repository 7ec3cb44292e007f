"""Removal of expired delegation tokens from the metadata, by the active controller (KIP-48).

A token that has expired lets nobody in, removed or not; this only ends its record. Called by
`fencing.py`; times are ms, `now_ms` of a clock that never goes back.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from appliance.base.errors import DiskFull
from appliance.config.broker import BrokerConfig
from appliance.config.delegation import CHECK_INTERVAL
from appliance.control.quorum.leadership import NotController
from appliance.controller.decision import Record
from appliance.controller.delegation_tokens import expired_records
from appliance.metadata.image import MetadataImage
from appliance.shell.log import INFO, Log

MOST: Final = 1000
"""Tokens that are removed in one turn."""
_SOON_MS: Final = 100
"""The pause where more are left, or the disk has no room."""


class TokenExpiry:
    """deadline: when to look again, every delegation.token.expiry.check.interval.ms."""

    __slots__ = ("_every_ms", "_log", "deadline")

    def __init__(self, config: BrokerConfig, log: Log) -> None:
        self._every_ms = config.int(CHECK_INTERVAL)
        self._log = log
        self.deadline = 0

    def start_interval(self, now_ms: int) -> None:
        """This node leads from now on."""
        self.deadline = now_ms + self._every_ms

    def remove_expired(
        self,
        image: MetadataImage,
        append: Callable[[list[Record]], None],
        now_ms: int,
        wall_ms: int,
    ) -> None:
        """Appends the removals of what has expired by the wall clock."""
        self.deadline = now_ms + min(_SOON_MS, self._every_ms)
        records = expired_records(image, wall_ms)
        with suppress(DiskFull, NotController):
            if records:
                append(records[:MOST])
                self._log.event(INFO, "delegation-tokens-expired", tokens=len(records[:MOST]))
            if len(records) <= MOST:
                self.deadline = now_ms + self._every_ms
