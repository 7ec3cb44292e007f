"""When leadership is given back to preferred replicas by itself (auto.leader.rebalance.enable), and
leaders out of sync are looked for where a topic allows them.

Invariant: nothing is looked at before the deadline, nor while there is one broker. Made when a node
becomes the active controller, and asked by whoever drives it.
"""

from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.controller.decision import Record, Situation
from appliance.controller.elections import balance, elect_unclean

_MOST: Final = 1000
"""Elections at a time, as Kafka's: the others have their turn soon after."""
_SOON_MS: Final = 10


class LeaderBalancer:
    """deadline: when `tick` has something to do. Times are ms of a clock that never goes back."""

    __slots__ = ("_interval_ms", "deadline")

    def __init__(self, config: BrokerConfig, now_ms: int) -> None:
        self._interval_ms = config.int("leader.imbalance.check.interval.seconds") * 1000
        self.deadline = now_ms + self._interval_ms

    def tick(self, situation: Situation, now_ms: int) -> list[Record]:
        """The elections that are due."""
        if now_ms < self.deadline:
            return []
        self.deadline = now_ms + self._interval_ms
        if len(situation.image.brokers) < 2:
            return []
        records = elect_unclean(situation, _MOST)
        if len(records) < _MOST and situation.config.bool("auto.leader.rebalance.enable"):
            records += balance(situation, _MOST - len(records))
        if len(records) >= _MOST:
            self.deadline = now_ms + _SOON_MS
        return records
