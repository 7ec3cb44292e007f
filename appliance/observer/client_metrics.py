"""Decoded metrics that clients pushed (KIP-714). The reader decodes them, not the process that
serves.

Looking again opens only what has come since. What cannot be opened has no samples and says why.
"""

from typing import Final, NamedTuple

from appliance.base.errors import MalformedRequest, PeerError
from appliance.ring.push_table import Pushed, PushTable
from appliance.wire import compression
from appliance.wire.otlp import MetricPoint, samples

OPENED_MAX: Final = 4 << 20
"""Bytes that one push may open to."""
SAMPLES_MAX: Final = 1000
"""Of one client."""


class PushedSamples(NamedTuple):
    """samples: in the client's order. wrong: why they are none, "" when they could be read."""

    pushed: Pushed
    samples: tuple[MetricPoint, ...]
    wrong: str


class ClientMetrics:
    """Metrics of the pushing clients, refreshed by repeated reads."""

    __slots__ = ("_known", "_table")

    def __init__(self, table: PushTable) -> None:
        self._table = table
        self._known: dict[tuple[bytes, int], PushedSamples] = {}

    def read_pushes(self, now_ms: int) -> list[PushedSamples]:
        """Every client whose last push still holds. now_ms: monotonic."""
        known = {}
        for pushed in self._table.read(now_ms):
            key = pushed.instance, pushed.pushed_ms
            known[key] = self._known.get(key) or _opened(pushed)
        self._known = known
        return list(known.values())

    @property
    def pushed_out(self) -> int:
        """How often a client lost its place to another one."""
        return self._table.pushed_out


def _opened(pushed: Pushed) -> PushedSamples:
    try:
        data = compression.decompress(pushed.codec, pushed.payload, OPENED_MAX)
        return PushedSamples(pushed, tuple(samples(data, SAMPLES_MAX)), "")
    except (PeerError, MalformedRequest) as why:
        return PushedSamples(pushed, (), str(why))
