"""This node as a broker of its cluster: registered, heard of, asking the active controller for what
only that decides, wherever it is. The shell around `lifecycle.py`.

A node that is no broker only says where its controller is. Alone in its cluster, a node registers
itself when it leads (`control/quorum/new_leader.py`) and hears nobody else: then nothing here is
ever due.

Called by `shell.py`: `turn_to` when somebody else leads the metadata log, `turn` in every turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from appliance.base import errors
from appliance.base.errors import CannotServe, PeerError
from appliance.config.broker import BrokerConfig
from appliance.config.invitations import TOKEN as JOIN_TOKEN
from appliance.control.broker.birth import Birth
from appliance.control.broker.channel import Channel, Connect, Own, Values
from appliance.control.broker.forwarding import Forwarding
from appliance.control.broker.lifecycle import (
    NEVER,
    UNKNOWN,
    Lifecycle,
    Register,
    State,
)
from appliance.control.broker.reports import (
    ALTER_PARTITION,
    ASSIGN_REPLICAS,
    Proposal,
    Report,
    folders,
    new_isrs,
    not_done,
)
from appliance.controller import node_rows
from appliance.controller.features import SUPPORTED, unsupported
from appliance.handlers.k62_broker_registration import TOKEN
from appliance.metadata.changes import BrokerChanged, Change
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import Endpoint
from appliance.quorum.messages import NOBODY
from appliance.shell.bugs import Bugs
from appliance.shell.log import NOTICE, WARNING, Log

OURSELVES: Final = -1
"""Stands for control itself where an I/O process is meant."""
ALLOCATE_IDS: Final = 67
REGISTER_BROKER: Final = 62
REGISTER_CONTROLLER: Final = 70
HEARTBEAT: Final = 63
_AGAIN_MS: Final = 1_000
_FEW_IDS: Final = 100
_LAST_ID: Final = (1 << 63) - 1
_TIMEOUT_MS: Final = 5_000
_UNKNOWN_MS: Final = 20
"""How soon it looks again whether there is somebody to ask."""


class Ears(Protocol):
    """The receivers of answers for I/O processes: their rings."""

    def isr_refused(self, proposal: Proposal, code: int) -> None: ...

    def ids(self, ioproc: int, first: int, count: int) -> None:
        """A block of producer ids; count 0: there is none to have."""
        ...


class Node:
    """alone: it is the only voter. lifecycle: its life as a broker. forwarding: requests of its
    clients that another node decides."""

    __slots__ = ("_again_ms", "_answered_ms", "_beat_ms", "_birth", "_cordoned", "_cordons",
                 "_ears", "_finalized", "_folders", "_ids_ms", "_is_broker", "_is_controller",
                 "_isrs", "_life", "_log", "_node_id", "_now_ms", "_offered", "_offline",
                 "_patience_ms", "_registering", "_said", "_work", "alone",
                 "forwarding", "lifecycle")  # fmt: skip

    def __init__(
        self,
        config: BrokerConfig,
        birth: Birth,
        connect: Connect,
        own: Own,
        ears: Ears,
        log: Log,
    ) -> None:
        self.alone = not config.several
        token = config.get_value(JOIN_TOKEN)
        rows = _none(node_rows.feature(config.int(node_rows.MOST)))
        self._offered = [*_FEATURES, rows, *([_none(f"{TOKEN}{token}")] if token else [])]
        self._is_broker, self._is_controller = config.is_broker, config.is_controller
        self.lifecycle = Lifecycle(config.int("broker.heartbeat.interval.ms"))
        self._patience_ms = config.int("initial.broker.registration.timeout.ms")
        self._birth = birth
        self._node_id = node_id = birth.identity.node_id
        # What may wait for a commit does not hold back who says that this node lives.
        bugs = Bugs(log)
        self._life = Channel(node_id, connect, own, bugs)
        self._work = Channel(node_id, connect, own, bugs)
        self.forwarding = Forwarding(self._work)
        self._ears = ears
        self._isrs = Report[Proposal](
            ALTER_PARTITION, node_id, self._work, new_isrs, self._isrs_heard
        )
        self._folders = Report[bytes](ASSIGN_REPLICAS, node_id, self._work, folders)
        self._log = log
        self._now_ms = self._again_ms = self._ids_ms = 0
        self._finalized: Mapping[str, int] = {}
        self._registering = False
        self._cordoned: tuple[bytes, ...] = ()
        self._cordons = False  # or did: a controller that knows nothing of that hears nothing
        self._offline: tuple[bytes, ...] = ()
        nothing: tuple[bytes, ...] = ()
        self._said = nothing, nothing  # by the last heartbeat
        self._beat_ms = 0  # when that was
        self._answered_ms = 0  # when the last one left that another node answered

    @property
    def state(self) -> State:
        """The state of the broker lifecycle."""
        return self.lifecycle.state

    @property
    def epoch(self) -> int:
        """The epoch of its registration, UNKNOWN before that."""
        return self.lifecycle.epoch

    @property
    def controller(self) -> int:
        """The id of the active controller, NOBODY while unknown."""
        return self._work.controller

    def turn_to(self, controller: int, image: MetadataImage) -> None:
        """This node leads the metadata log, or NOBODY is known to. image: what is committed."""
        if controller == self.controller:
            return
        for channel in (self._life, self._work):
            channel.turn_to(controller)
        self.forwarding.found()
        if self.alone or controller == NOBODY:
            return
        mine = image.brokers.get(self._node_id)
        born = self._birth.incarnation
        # Who has other listeners than before registers anew, by the same incarnation.
        known = mine is not None and (mine.incarnation_id, mine.endpoints) == (
            born.broker_id,
            born.endpoints,
        )
        if self.lifecycle.state is State.NEW and mine is not None and known:
            self.lifecycle.resume(mine.epoch)
        self.lifecycle.found(self._now_ms)

    @property
    def member(self) -> bool:
        """Others count on this node, so that it must not end before it has left."""
        return self.lifecycle.state not in (State.NEW, State.GONE)

    @property
    def keeps_a_loss(self) -> bool:
        """The cluster has yet to hear that this broker may have lost what it had: it registers with
        no epoch before, and has not done so."""
        counts = self._is_broker and not self.alone
        return counts and self._birth.previous_epoch < 0 and not self.lifecycle.was_registered

    def leave(self) -> None:
        """The appliance is to end. It has left when it is no `member` any more."""
        self.lifecycle.leave(self._now_ms)

    def changed(self, changes: Iterable[Change], image: MetadataImage) -> None:
        """This was committed, and is in the image."""
        if self.alone:
            return
        for change in changes:
            if isinstance(change, BrokerChanged):
                broker = image.brokers.get(change.broker_id)
                if broker is not None and broker.in_controlled_shutdown:
                    self.lifecycle.hurry(self._now_ms)

    def run_once(self, now_ms: int, committed: int, image: MetadataImage, ready: bool) -> int:
        """Say what is due, send, receive; when (ms) to come again at the latest. committed:
        exclusive end of the metadata that is, and `image` shows. ready: every I/O process serves,
        and has read as much."""
        self._now_ms, self._finalized = now_ms, image.features
        due_ms = self.forwarding.run_once(now_ms)
        if self._is_controller and not self.alone:
            self._register_controller(now_ms, image)
        if self._is_broker and not self.alone:
            self._live(now_ms, committed - 1, ready)
            self._isrs.send_report(self.lifecycle.epoch)
            self._folders.send_report(self.lifecycle.epoch)
            soonest_ms = 0 if self._life.known else now_ms + _UNKNOWN_MS
            due_ms = min(due_ms, max(self.lifecycle.due_ms(), soonest_ms))
        waits = min(channel.run_once() for channel in (self._life, self._work))
        return min(due_ms, NEVER if waits == NEVER else now_ms + waits)

    # What I/O processes want ----------------------------------------------------------------------

    def propose(self, proposal: Proposal) -> None:
        """A leader here wants another ISR."""
        self._isrs.add_report((proposal.change.topic_id, proposal.change.partition), proposal)

    def assign(self, topic_id: bytes, partition: int, folder: bytes) -> None:
        """The partition lies in this folder now."""
        self._folders.add_report((topic_id, partition), folder)

    def cordon(self, folders: Sequence[bytes]) -> None:
        """These folders take nothing new now (KIP-1066)."""
        self._cordoned = tuple(folders)
        self._cordons = self._cordons or bool(folders)

    def failed(self, folder: bytes, path: str) -> None:
        """This folder is offline, until the next start (KIP-858). Raises CannotServe for the one of
        the metadata: then others are better off without this node."""
        if folder == self._birth.identity.directory_id:
            raise CannotServe(f"the log folder {path} has failed, and the metadata log is in it")
        if folder not in self._offline:
            self._offline += (folder,)

    def want_ids(self, ioproc: int) -> None:
        """A block of producer ids, of another node that is the controller."""
        self._ids_ms = self._now_ms + _AGAIN_MS
        epoch = self.lifecycle.epoch
        if epoch == UNKNOWN or not self._work.known:
            self._ears.ids(ioproc, 0, 0)
            return
        values = {"broker_id": self._node_id, "broker_epoch": epoch}

        def on_response(answer: Any) -> None:
            given = not isinstance(answer, PeerError) and not answer.error_code
            first, count = (answer.producer_id_start, answer.producer_id_len) if given else (0, 0)
            sound = 0 <= first <= _LAST_ID - count and count > 0
            self._ears.ids(ioproc, *((first, count) if sound else (0, 0)))

        self._work.ask_controller(ALLOCATE_IDS, values, on_response, _TIMEOUT_MS)

    def stock_ids(self, left: int) -> None:
        """Before the ids run out that control gives to producers, ask for more. left: how many
        there are."""
        due = self._now_ms >= self._ids_ms and self.lifecycle.state is State.RUNNING
        if due and left < _FEW_IDS and self.controller != self._node_id:
            self.want_ids(OURSELVES)

    def _isrs_heard(self, proposals: Mapping[tuple[bytes, int], Proposal], answer: Any) -> None:
        for proposal, code in not_done(proposals, answer):
            self._ears.isr_refused(proposal, code)

    # Its own life ---------------------------------------------------------------------------------

    def _live(self, now_ms: int, offset: int, ready: bool) -> None:
        lifecycle = self.lifecycle
        lifecycle.tick(now_ms)
        if not self._life.known:
            return
        if self._said != (self._offline, self._cordoned):
            lifecycle.hurry(now_ms)
        ask = lifecycle.next_request(now_ms, offset, ready)
        if ask is None:
            return
        if isinstance(ask, Register):
            self._life.ask_controller(
                REGISTER_BROKER, self._registration(), self._registered, _TIMEOUT_MS
            )
            return
        self._said = self._offline, self._cordoned
        self._beat_ms = now_ms
        values = {
            "broker_id": self._node_id,
            "broker_epoch": ask.epoch,
            "offline_log_dirs": self._offline,
            "cordoned_log_dirs": self._cordoned if self._cordons else None,
            "current_metadata_offset": ask.offset,
            "want_fence": ask.want_fence,
            "want_shut_down": ask.want_shut_down,
        }
        self._life.ask_controller(HEARTBEAT, values, self._beaten, _TIMEOUT_MS)

    def _registration(self) -> Values:
        birth = self._birth
        return {
            "broker_id": self._node_id,
            "cluster_id": birth.identity.cluster_id,
            "incarnation_id": birth.incarnation.broker_id,
            "listeners": _listeners(birth.incarnation.endpoints),
            "features": self._offered,
            "rack": birth.incarnation.rack,
            "is_migrating_zk_broker": False,
            "log_dirs": [one for one in birth.log_dirs if one not in self._offline],
            "previous_broker_epoch": birth.previous_epoch,
        }

    def _registered(self, answer: Any) -> None:
        code = _code(answer)
        if code == errors.NONE:
            self.lifecycle.registered(answer.broker_epoch, self._now_ms)
            self._log.event(NOTICE, "broker-registered", epoch=answer.broker_epoch)
        elif code in _NOT_INVITED:
            raise CannotServe(f"the cluster refuses this node: {_NOT_INVITED[code]}")
        else:
            self._refused(code, "BrokerRegistration")
            if self.lifecycle.duplicate_ms(self._now_ms) >= self._patience_ms:
                raise CannotServe(f"another living node has node.id={self._node_id}: {_UNIQUE}")

    def _beaten(self, answer: Any) -> None:
        code = _code(answer)
        if code != errors.NONE:
            self._refused(code, "BrokerHeartbeat")
            return
        if self.controller != self._node_id:
            self._answered_ms = self._beat_ms
        before = self.lifecycle.state
        self.lifecycle.beaten(answer.is_fenced, answer.should_shut_down, self._now_ms)
        if self.lifecycle.state is not before:
            self._log.event(NOTICE, f"broker-{self.lifecycle.state.value}")

    def _refused(self, code: int, request: str) -> None:
        if code in _NOBODY_THERE:
            self.lifecycle.failed(self._now_ms)
        else:
            why: dict[str, object] = {"request": request, "error": code}
            if code == errors.UNSUPPORTED_VERSION and (beyond := unsupported(self._finalized)):
                why["unsupported"] = beyond
            if code == errors.DUPLICATE_BROKER_REGISTRATION:
                why["cause"] = f"the session of node.id={self._node_id} has not ended: {_UNIQUE}"
            self._log.event_seldom(WARNING, "broker-refused", **why)
            self.lifecycle.refused(code, self._now_ms)

    def heard_ms(self, followed_ms: int) -> int:
        """When it was heard that this broker is not fenced, at the latest: the controller answered,
        or a majority followed this node, when nobody else was that. 0: never."""
        if self.lifecycle.state is State.RUNNING:
            self._answered_ms = max(self._answered_ms, followed_ms)
        return self._answered_ms

    def _register_controller(self, now_ms: int, image: MetadataImage) -> None:
        """ControllerRegistration, until the metadata has this start of this node."""
        if self._registering or now_ms < self._again_ms or not self._work.known:
            return
        one = self._birth.incarnation
        known = image.controllers.get(self._node_id)
        if known is not None and known.incarnation_id == one.controller_id:
            return
        if not image.metadata_version:
            return
        self._registering = True
        values = {
            "controller_id": self._node_id,
            "incarnation_id": one.controller_id,
            "zk_migration_ready": False,
            "listeners": _listeners(self._birth.controllers),
            "features": _FEATURES,
        }
        self._work.ask_controller(
            REGISTER_CONTROLLER, values, self._controller_registered, _TIMEOUT_MS
        )

    def _controller_registered(self, answer: Any) -> None:
        self._registering = False
        self._again_ms = self._now_ms + _AGAIN_MS  # until the metadata shows it


_NOBODY_THERE: Final = (
    errors.NOT_CONTROLLER, errors.NETWORK_EXCEPTION, errors.REQUEST_TIMED_OUT,
)  # fmt: skip

_UNIQUE: Final = "every node of a cluster needs a node.id of its own"
_INVITE: Final = "penstock cluster invite, on the host of one of its nodes, prints another line"
_NOT_INVITED: Final = {
    errors.CLUSTER_AUTHORIZATION_FAILED: "it is not known there, and only who is invited joins"
    f" (penstock.join=invited); {_INVITE}",
    errors.DELEGATION_TOKEN_NOT_FOUND: "its token is used, or was never given out; " + _INVITE,
    errors.DELEGATION_TOKEN_OWNER_MISMATCH: "its token is for a node with another number; "
    + _INVITE,
    errors.DELEGATION_TOKEN_EXPIRED: "its token has expired; " + _INVITE,
}

_FEATURES: Final = [
    {"name": name, "min_supported_version": low, "max_supported_version": high}
    for name, (low, high) in SUPPORTED.items()
]


def _none(name: str) -> Values:
    """A feature that is none."""
    return {"name": name, "min_supported_version": 0, "max_supported_version": 0}


def _listeners(endpoints: Iterable[Endpoint]) -> list[Values]:
    return [
        {
            "name": one.name,
            "host": one.host,
            "port": one.port,
            "security_protocol": one.security_protocol,
        }
        for one in endpoints
    ]


def _code(answer: Any) -> int:
    return answer.code if isinstance(answer, PeerError) else int(answer.error_code)
