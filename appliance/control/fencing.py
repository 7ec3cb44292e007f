"""Which brokers live, as the active controller sees it: heartbeats, and evidence that one is gone
or silent; that those who came back lead again; and that expired delegation tokens go.

    lead ──▶ (a whole session for everybody) ── late, gone or silent ──▶ fenced, others lead
    resign: nothing is known any more

Invariant: heartbeats are counted only while this node leads. Called by `shell.py`; times are ms of
a clock that never goes back.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from appliance.base.errors import DiskFull
from appliance.config.broker import BrokerConfig
from appliance.control.broker.broker_liveness import BrokerLiveness, Watched
from appliance.control.broker.lifecycle import NEVER
from appliance.control.quorum.leadership import NotController
from appliance.control.token_expiry import TokenExpiry
from appliance.controller.broker_states import stale
from appliance.controller.decision import Record, Situation
from appliance.controller.heartbeats import Heartbeats
from appliance.controller.leader_balancer import LeaderBalancer
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import BrokerImage
from appliance.shell.log import NOTICE, WARNING, Log

_AGAIN_MS: Final = 100
"""Until then there may be room, where there was none on the disk."""


class Fencing:
    """heartbeats: None while this node does not lead. node_id: this node's, whose life is ours.
    wall_ms: the time by which tokens expire."""

    __slots__ = (
        "_again_ms",
        "_append",
        "_balancing",
        "_expiry",
        "_fetch_ms",
        "_liveness",
        "_log",
        "_node_id",
        "_now_ms",
        "_session_ms",
        "_situation",
        "_wall_ms",
        "heartbeats",
    )  # fmt: skip

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        connect: Callable[[BrokerImage], Watched | None],
        append: Callable[[list[Record]], None],
        situation: Callable[[], Situation],
        log: Log,
        wall_ms: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._session_ms = config.int("broker.session.timeout.ms")
        self._fetch_ms = config.int("controller.quorum.fetch.timeout.ms")
        self._append = append
        self._situation = situation
        self._log = log
        self._wall_ms = wall_ms
        self._now_ms = self._again_ms = 0
        self._liveness = BrokerLiveness(
            node_id, connect, self._gone, self._silent, config.silence_ms
        )
        self.heartbeats: Heartbeats | None = None
        self._balancing: LeaderBalancer | None = None
        self._expiry = TokenExpiry(config, log)

    def lead(self, image: MetadataImage, now_ms: int, silent: int) -> None:
        """This node leads, over this image. silent: who led before, where the quorum gave it up
        because it had not answered for a fetch timeout."""
        self.heartbeats = Heartbeats(image, self._node_id, self._session_ms, now_ms)
        self._balancing = LeaderBalancer(self._situation().config, now_ms)
        self._expiry.start_interval(now_ms)
        self._liveness.follow(image.brokers)
        self.heartbeats.silent(silent, now_ms - self._fetch_ms)
        self._liveness.suspect(silent)

    def resign(self) -> None:
        """This node does not lead any more."""
        self.heartbeats = self._balancing = None
        self._liveness.stop()

    def follow(self, image: MetadataImage) -> None:
        """Brokers have changed."""
        if self.heartbeats is not None:
            self._liveness.follow(image.brokers)

    def fence_expired(self, now_ms: int) -> int:
        """Fence who is late, now and then give leadership back; when (ms) to come again at the
        latest."""
        heartbeats, balancing = self.heartbeats, self._balancing
        if heartbeats is None or balancing is None:
            return NEVER
        self._now_ms = now_ms
        waits = self._liveness.check_brokers(now_ms, heartbeats.heard_at)
        if now_ms >= max(heartbeats.deadline, self._again_ms):
            with suppress(DiskFull, NotController):
                self._again_ms = now_ms + _AGAIN_MS
                while records := stale(self._situation(), heartbeats, now_ms):
                    self._append(records)
                    self._log.event(WARNING, "broker-fenced", records=len(records))
                self._again_ms = 0
        if now_ms >= balancing.deadline:
            self._balance(balancing, now_ms)
        if now_ms >= self._expiry.deadline:
            self._expiry.remove_expired(
                self._situation().image, self._append, now_ms, self._wall_ms()
            )
        due_ms = min(balancing.deadline, max(heartbeats.deadline, self._again_ms))
        due_ms = min(due_ms, self._expiry.deadline)
        return min(due_ms, NEVER if waits == NEVER else now_ms + waits)

    def _balance(self, balancing: LeaderBalancer, now_ms: int) -> None:
        """Runs preferred leader elections; those without disk space are retried the next time."""
        with suppress(DiskFull, NotController):
            if records := balancing.tick(self._situation(), now_ms):
                self._append(records)
                self._log.event(NOTICE, "leaders-balanced", records=len(records))

    def _gone(self, broker_id: int) -> None:
        assert self.heartbeats is not None, "nobody is watched any more"
        self._log.event(NOTICE, "broker-gone", broker=broker_id, cause="nobody listens there")
        self.heartbeats.lost(broker_id, self._now_ms, 0)

    def _silent(self, broker_id: int) -> None:
        assert self.heartbeats is not None, "nobody is watched any more"
        self._log.event(NOTICE, "broker-silent", broker=broker_id, action="fence it")
        self.heartbeats.lost(broker_id, self._now_ms, -1)
