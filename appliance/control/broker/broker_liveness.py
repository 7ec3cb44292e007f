"""Liveness of the other brokers: the active controller keeps an idle connection to each.

A connection that is closed and then refused says that nobody listens there any more, which the
death of a single process of an appliance does not: its supervisor holds the listening sockets. That
is evidence, told once for each broker epoch. One that is not made in time is none, nor is an
address that is not known: a broker behind a firewall lives. Who became unfenced while we watch must
have been there first: Apache Kafka's brokers listen only then.

    heard ─ a second without a heartbeat ─▶ asked ─ no heartbeat, no answer ─▶ silent
      ▲────── a heartbeat, or an answer ──────┘

Who is late is asked by that connection, where another process answers than the one that beats. Only
who answered before can be silent (a firewall may keep us away from a broker that beats), or who led
the quorum until it was silent. Time in which this process did not run proves nothing of others.

Called by `fencing.py`; times are ms of a clock that never goes back.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from appliance.base.dataclass import dataclass
from appliance.base.errors import NETWORK_EXCEPTION, PeerError, Refused
from appliance.control.broker.channel import Values
from appliance.metadata.parts import BrokerImage
from appliance.peers.conversation import NEVER, Done

DESCRIBE_CLUSTER: Final = 60
_PATIENCE_MS: Final = 10_000
_ASK_MS: Final = 1_000
"""Who is not heard of for so long is asked."""
_ANSWER_MS: Final = 500
"""At least so long it may take to answer."""
_TWICE_MS: Final = 50
"""After so long we look again before we believe it: a sign of life may lie there unread."""
_ABSENT_MS: Final = 250
"""Who comes so much later than it wanted to has not listened."""
_ANYTHING: Final[Values] = {"include_cluster_authorized_operations": False}


class Watched(Protocol):
    """A connection to one broker: `peers.link.Link`."""

    @property
    def connected(self) -> bool: ...

    def ask_peer(
        self, api_key: int, version: int, message: Values, done: Done, timeout_ms: int
    ) -> None: ...

    def run_once(self) -> int: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Watch:
    """served: it was in use before we began, or has answered. asking: it is to answer, and may
    take until `until_ms`. there: it did, by the present connection. answered: since the last turn.
    heard_ms: when it answered last. reached: we have heard it, or others have; else its silence
    says nothing. told: that it is gone.
    since_ms: of its silence, in which we were absent for absent_ms; doubted and silent: it seemed
    so at one look, and was told to be."""

    link: Watched
    epoch: int
    served: bool
    asking: bool = False
    there: bool = False
    told: bool = False
    answered: bool = False
    reached: bool = False
    until_ms: int = 0
    heard_ms: int = 0
    since_ms: int = -1
    absent_ms: int = 0
    doubted: bool = False
    silent: bool = False

    def record_heartbeat(self, heard_ms: int, now_ms: int) -> None:
        """heard_ms: of the last heartbeat."""
        if self.answered:
            self.answered, self.heard_ms = False, now_ms
        last_ms = max(heard_ms, self.heard_ms)
        if last_ms != self.since_ms:
            self.since_ms, self.absent_ms = last_ms, 0
            self.doubted = self.silent = False


class BrokerLiveness:
    """connect: a connection to a broker, None where it has no address for us. gone: is told the id
    of who is not there any more. silent: of who is neither heard nor answers for `silence_ms`, once
    for each silence."""

    __slots__ = ("_connect", "_due_ms", "_gone", "_node_id", "_silence_ms", "_silent", "_told",
                 "_watches", "_watching")  # fmt: skip

    def __init__(
        self,
        node_id: int,
        connect: Callable[[BrokerImage], Watched | None],
        gone: Callable[[int], None],
        silent: Callable[[int], None],
        silence_ms: int,
    ) -> None:
        self._node_id = node_id
        self._connect = connect
        self._gone = gone
        self._silent = silent
        self._silence_ms = silence_ms
        self._watching = False
        self._due_ms = NEVER
        self._watches: dict[int, _Watch] = {}
        self._told: dict[int, int] = {}  # broker → its epoch, of who was told to be gone

    def stop(self) -> None:
        """Watch nobody any more, and know nothing."""
        self.follow({})
        self._told.clear()
        self._watching = False
        self._due_ms = NEVER

    def suspect(self, broker_id: int) -> None:
        """Others did hear it, until it was silent: it need not have answered here."""
        if broker_id in self._watches:
            self._watches[broker_id].reached = True

    def follow(self, brokers: Mapping[int, BrokerImage]) -> None:
        """Watch those of them that are unfenced, and nobody else."""
        living = {
            one.broker_id: one
            for one in brokers.values()
            if not one.fenced and one.broker_id != self._node_id
        }
        for broker_id, watch in list(self._watches.items()):
            if broker_id not in living or living[broker_id].epoch != watch.epoch:
                del self._watches[broker_id]
                watch.told = True
                watch.link.close()
        for broker_id, broker in living.items():
            if broker_id not in self._watches:
                link = self._connect(broker)
                if link is not None:
                    told = self._told.get(broker_id) == broker.epoch
                    served = not self._watching
                    self._watches[broker_id] = _Watch(link, broker.epoch, served, told=told)
        self._watching = True

    def check_brokers(self, now_ms: int, heard_at: Callable[[int], int]) -> int:
        """Look at each; in how many ms to come again at the latest. heard_at: when a broker was
        heard of last."""
        late_ms = now_ms - self._due_ms
        soonest = NEVER
        for broker_id, watch in list(self._watches.items()):
            if late_ms > _ABSENT_MS:
                watch.absent_ms += late_ms
                watch.until_ms = now_ms + _ANSWER_MS
            watch.record_heartbeat(heard_at(broker_id), now_ms)
            wait_ms = self._look(broker_id, watch, now_ms)
            soonest = min(soonest, wait_ms, watch.link.run_once())
            if not (watch.asking or watch.there or watch.told):
                soonest = 0  # it was hung up on just now: it is asked again
        self._due_ms = now_ms + soonest
        return soonest

    def _look(self, broker_id: int, watch: _Watch, now_ms: int) -> int:
        """Ask one, or tell that it is silent; when (in ms) time alone gives a reason to look."""
        if watch.told:
            return NEVER
        watch.there = watch.there and watch.link.connected
        if not watch.asking and (not watch.there or now_ms - watch.since_ms >= _ASK_MS):
            watch.asking, watch.until_ms = True, now_ms + _ANSWER_MS
            heard = partial(self._heard, broker_id, watch)
            watch.link.ask_peer(DESCRIBE_CLUSTER, 0, _ANYTHING, heard, _PATIENCE_MS)
        if not watch.asking:
            return watch.since_ms + _ASK_MS - now_ms
        if not watch.reached or watch.silent:
            return NEVER
        over_ms = max(watch.since_ms + watch.absent_ms + self._silence_ms, watch.until_ms)
        if now_ms < over_ms:
            return over_ms - now_ms
        if not watch.doubted:
            watch.doubted, watch.until_ms = True, now_ms + _TWICE_MS
            return _TWICE_MS
        watch.silent = True
        self._silent(broker_id)
        return NEVER

    def _heard(self, broker_id: int, watch: _Watch, answer: Any) -> None:
        watch.asking = False
        if not isinstance(answer, PeerError):
            watch.there = watch.served = watch.answered = watch.reached = True
        elif answer.code == NETWORK_EXCEPTION and watch.there:
            watch.there = False  # it was there when it was asked: it is asked again
        elif isinstance(answer, Refused) and watch.served and not watch.told:
            watch.told = True
            self._told[broker_id] = watch.epoch
            self._gone(broker_id)
