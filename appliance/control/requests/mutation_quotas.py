"""Control's side of quotas: who may change how much of the metadata, and what all quotas are used.

Invariant: every request is decided with a permit of its own, made from the caller that its network
process names. Called by `admin_requests.py` for each request, by `shell.py` when a quota has
changed.
"""

from collections.abc import Callable, Sequence

from appliance.base.caller import Caller
from appliance.base.clock import Clock
from appliance.config.broker import BrokerConfig
from appliance.metadata.changes import Change, ConfigChanged, QuotaChanged
from appliance.metadata.effective import broker_config
from appliance.metadata.image import MetadataImage
from appliance.quotas.bucket import Bucket
from appliance.quotas.meters import Meters, MeterUsage
from appliance.quotas.mutations import STRICT_SINCE, Permit
from appliance.quotas.window import Windows
from appliance.shell.seat import Seat


class Mutations:
    """The meters of control, which counts in the last region of the table."""

    __slots__ = ("_clock", "_config", "_meters")

    def __init__(
        self,
        seat: Seat,
        clock: Clock,
        image: MetadataImage,
        reach: Callable[[str, str], object],
    ) -> None:
        """reach: told of a bound that was reached, and why."""
        config = seat.config
        windows = Windows(seat.quotas.windows, config.int("quota.window.size.seconds") * 1000)
        size = config.int("controller.quota.window.size.seconds")
        bucket = Bucket(config.int("controller.quota.window.num") * size)
        self._clock = clock
        self._config: BrokerConfig = config
        self._meters = Meters(seat.quotas, seat.quotas.regions - 1, windows, bucket, reach)
        self._configure(image)

    def follow(self, changes: Sequence[Change], image: MetadataImage) -> None:
        """The image has changed; perhaps quotas have."""
        if any(isinstance(change, QuotaChanged | ConfigChanged) for change in changes):
            self._configure(image)

    def _configure(self, image: MetadataImage) -> None:
        config = broker_config(image, self._config)
        self._meters.configure(image.quotas, config.limit("max.connection.creation.rate"))

    def usage(self) -> list[MeterUsage]:
        """How much of each quota is used, by all processes together."""
        return self._meters.usage(self._now_ms())

    def permit(self, api_key: int, version: int, caller: Caller) -> Permit:
        """For a request of this kind, 0 and 0: none of a client's own."""
        strict = version >= STRICT_SINCE.get(api_key, 0)
        return Permit(self._meters, caller.principal.name, caller.client_id, strict, self._now_ms())

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // 1_000_000
