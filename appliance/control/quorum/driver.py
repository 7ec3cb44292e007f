"""Drives this node's replica of the quorum: what it decides goes to the disk, then to the other
voters; what they say goes to it; and control is told when this node begins to lead or ends.

    replica ─ take ─▶ quorum-state ─▶ messages ─▶ links           served: requests of others
       ▲                                            │                    │
       └───────── answers, closed connections ◀─────┘ ◀──────────────────┘

Who is so far behind that the leader's log has not all of it any more fetches a snapshot, and this
process begins again with that. Called by `shell.py`: in each turn `tick` first and `flush` last,
`served.serve` for each request of another node (`served_requests.py`).

Invariant: nothing is said to anybody before quorum-state has what it follows from. Where that finds
no room it is tried again: until then nothing is sent and no vote is granted.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Protocol

from appliance.base.errors import (
    NETWORK_EXCEPTION,
    DiskFull,
    PeerError,
)
from appliance.config.between_nodes import to_controllers
from appliance.config.broker import BrokerConfig
from appliance.control.quorum import wire
from appliance.control.quorum.commit_times import CommitTimes
from appliance.control.quorum.connections import Connect, Everybody
from appliance.control.quorum.full_disk_resignation import MakingWay
from appliance.control.quorum.served_requests import QuorumParts, QuorumServer
from appliance.control.quorum.snapshot_fetch import BeginAgain, Download, install
from appliance.handlers.admin import Quorum
from appliance.handlers.admin import QuorumReplica as Described
from appliance.metadata.checkpoint import CheckpointBroken
from appliance.peers.conversation import NEVER
from appliance.quorum.majority import needed
from appliance.quorum.messages import BeginEpoch, Fetch, Fetched, Message, QuorumState, Voted
from appliance.quorum.peer import QuorumLog
from appliance.quorum.replica import Replica
from appliance.quorum.voters import STATIC, ControllerEndpoint, place_of
from appliance.shell.bugs import Bugs
from appliance.shell.log import ERROR, NOTICE, WARNING
from appliance.shell.loop import LONGEST_WAIT_MS

_MAX_WAIT_MS: Final = 500
_NO_ROOM_MS: Final = 1_000
_STATE_MS: Final = 100
"""After so long quorum-state may find room: others wait for a vote."""
_OBSERVER_MS: Final = 300_000
"""Who observes and has not fetched for so long is not told of any more, as by Kafka."""


class RoleCallbacks(Protocol):
    """Callbacks for changes of this node's role in the quorum."""

    def led(self) -> None:
        """This node leads a new epoch. Raises StorageFailed."""
        ...

    def lost(self) -> None:
        """It does not any more: what is not committed was never decided here."""
        ...

    def leader_changed(self) -> None:
        """Another leader or epoch is known, or that there is none."""
        ...

    def reply(self, netproc: int, token: int, code: int, body: bytes) -> None:
        """The answer to what `serve` was given."""
        ...


CONTRADICTS: Final = "it contradicts what is agreed"
"""How the cause begins of an answer that is not taken, because a node that is sound gives none."""


class QuorumDriver:
    """others: the links to other nodes. level: this node has had all that was agreed, once since
    its start: what is committed here is no older than what it served before. commits: how
    long they take."""

    def __init__(
        self,
        parts: QuorumParts,
        config: BrokerConfig,
        roles: RoleCallbacks,
        endpoints: tuple[ControllerEndpoint, ...] = (),
    ) -> None:
        """endpoints: where this node is reached as a controller."""
        self._quorum, self._identity, self._disk, self._clock, self._events = parts
        quorum = parts.quorum
        self._replica = quorum.replica
        self._bugs = Bugs(parts.events)
        self._roles = roles
        self._endpoints = endpoints
        self._names = config.list("controller.listener.names")
        self._listener = to_controllers(config).listener
        self.others = Everybody(
            parts.identity.node_id, lambda: quorum.reached(self._listener), seeds(config)
        )
        self._request_ms = config.int("controller.quorum.request.timeout.ms")
        self._fetch_ms = config.int("controller.quorum.fetch.timeout.ms")
        self._backoff_ms = config.int("controller.quorum.retry.backoff.ms")
        self._max_bytes = config.int("controller.quorum.fetch.max.bytes")
        self._download: Download | None = None
        self._number = 0  # of the newest fetch
        self._again_ms = NEVER  # when the leader is asked again, after a failure
        self._unwritten: QuorumState | None = None  # for which quorum-state found no room
        self._write_ms = NEVER  # when it is tried again
        self._way = MakingWay(quorum, self._fetch_ms)
        self._led = -1  # the epoch that this node leads
        self._shown = (-1, -1)  # leader and epoch
        self._goal = 0  # committed up to there, it is level
        self._leaves = False
        self.served = QuorumServer(
            parts, self.apply_effects, roles.reply, self._places_by, self._hear_of
        )
        self.level = quorum.alone
        self.commits = CommitTimes()

    def connect(self, link: Connect) -> None:
        """From now on others can be asked."""
        self.others.connect = link

    def places(self) -> dict[int, tuple[str, int]]:
        """(host, port) of the controllers' listener of each voter, by its id, and of who leads."""
        return self.others.places() | self._own(self._listener)

    def _own(self, listener: str) -> dict[int, tuple[str, int]]:
        place = place_of(self._endpoints, listener)
        return {} if place is None else {self._identity.node_id: place}

    def _places_by(self, listener: str) -> dict[int, tuple[str, int]]:
        """The same, for who asks by this listener: by another one than this node's own way to
        controllers, those are told that have it."""
        if listener not in self._names or listener == self._listener:
            return self.places()
        return self._quorum.reached(listener) | self._own(listener)

    def _hear_of(self, node: int, endpoints: Sequence[ControllerEndpoint]) -> None:
        """A node says where it is reached, or somebody says it of that. Static voters are where
        the settings say: those of others may name another listener than this node's."""
        place = place_of(endpoints, self._listener)
        static = self._quorum.kraft_version == STATIC and self._quorum.electing.latest.voters
        if place is not None and not static:
            self.others.learn({node: place})

    # Turns ----------------------------------------------------------------------------------------

    def tick(self, now_ms: int, *, low: bool = False) -> None:
        """Time has passed. low: the disk of the metadata is nearly full. Raises StorageFailed."""
        replica = self._replica
        self._way.is_low(low=low)
        self._look_at_commits()
        if now_ms >= replica.deadline and not self._leaves:
            replica.tick(now_ms)
            self.apply_effects()
        if now_ms >= self._again_ms:
            self._again_ms = NEVER
            replica.fetch()
            self.apply_effects()
        if now_ms >= self._write_ms:
            replica.fetch()
            self.apply_effects()
        if replica.holds_back and replica.begun:
            self._way.room()  # a record of this epoch was written

    def flush(self, now_ms: int) -> int:
        """Answer parked fetches that have something to say, and send: how many ms the loop may
        wait. Raises StorageFailed."""
        self.apply_effects()  # a sync may have ended: a follower fetches on
        self._look_at_commits()
        if not self.level:
            self.level = self._is_level()
        served_due = self.served.answer_parked(now_ms)
        wait = min(LONGEST_WAIT_MS, self.others.run_once())
        due = min(self._again_ms, self._write_ms, served_due)
        if not self._leaves:
            due = min(due, self._replica.deadline)
        return max(0, min(wait, due - now_ms))

    def _look_at_commits(self) -> None:
        replica, end = self._replica, self._quorum.log.end_offset
        self.commits.record_commits(
            replica.leads, replica.high_watermark, end, self._clock.monotonic_ns()
        )

    def _is_level(self) -> bool:
        """A leader knows what was agreed before it once a record of its own epoch is."""
        quorum = self._quorum
        newest = quorum.images.committed.epoch == self._replica.epoch
        return newest and 0 < self._goal <= quorum.committed

    def apply_effects(self) -> bool:
        """Carries out the replica's effects: writes its state, sends its messages, follows its
        role. False if the state is not on the disk, so that no vote may be sent. Raises
        StorageFailed.
        """
        known, messages = self._replica.take_effects()
        written = self._written(known or self._unwritten)
        for target, what in messages if written else ():
            self._send(target, what)
        self._act()
        return written

    def _written(self, known: QuorumState | None) -> bool:
        """Writes quorum-state if it has changed; True if the file is up to date. Raises
        StorageFailed.
        """
        if known is None:
            return True
        now_ms = self._now_ms()
        if known == self._unwritten and now_ms < self._write_ms:
            return False
        try:
            self._quorum.remember(known)
        except DiskFull as cause:
            self._unwritten, self._write_ms = known, now_ms + _STATE_MS
            self._way.no_room()
            self._events.event_seldom(ERROR, "metadata-vote-not-written", cause=str(cause))
            return False
        self._unwritten, self._write_ms = None, NEVER
        return True

    def make_way(self) -> None:
        """This leader has had no room for a while: another voter leads, if one can. Raises
        StorageFailed."""
        if self._way.resign_if_full(self._now_ms()):
            epoch = self._replica.epoch
            self._events.event(ERROR, "metadata-makes-way", epoch=epoch, cause="no room to lead")
            self.apply_effects()

    def leave(self) -> None:
        """The orderly end: who leads says who should. Raises StorageFailed."""
        if not self._leaves and not self._quorum.alone:
            self._leaves = True
            self._replica.resign(self._now_ms())
            self.apply_effects()

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // 1_000_000

    def _act(self) -> None:
        replica, leadership = self._replica, self._quorum.leadership
        if self._led >= 0 and not (replica.leads and replica.epoch == self._led):
            self._led = -1
            self._roles.lost()
        begins = replica.leads and self._led < 0
        if begins:
            self._led = replica.epoch
            self._roles.led()
            if not self.level:
                self._goal = self._quorum.log.end_offset
        shown = leadership.leader_id, leadership.epoch
        if shown != self._shown:
            self._shown = shown
            self._roles.leader_changed()

    def followed_ms(self, now_ms: int) -> int:
        """Since when fewer than a majority have fetched from this leader, in ms; 0 where it does
        not lead, or nobody else votes."""
        replica = self._replica
        if not replica.leads or self._quorum.alone:
            return 0
        missing = needed(len(replica.voters)) - replica.votes
        others = [one for one in replica.voters.items() if one[0] != replica.node_id]
        heard = sorted(replica.peers[one].fetched_ms for one in others if one in replica.peers)
        if missing <= 0:
            return now_ms
        return heard[-missing] if missing <= len(heard) else 0

    def described(self, wall_ms: int) -> Quorum:
        """For DescribeQuorum. wall_ms: now."""
        replica, quorum, leadership = self._replica, self._quorum, self._quorum.leadership
        ahead_ms = wall_ms - self._now_ms()

        def row(node_id: int, directory_id: bytes) -> Described:
            if node_id == replica.node_id:
                return Described(node_id, directory_id, quorum.log.end_offset, wall_ms, wall_ms)
            peer = replica.peers.get((node_id, directory_id))
            if peer is None or peer.held < 0:
                return Described(node_id, directory_id, -1, -1, -1)
            level_ms = -1 if peer.level_ms < 0 else peer.level_ms + ahead_ms
            fetched_ms = peer.fetched_ms + ahead_ms
            return Described(node_id, directory_id, peer.held, fetched_ms, level_ms)

        seen_ms = self._now_ms() - _OBSERVER_MS
        voters = replica.voters.items()
        return Quorum(
            leadership.leader_id,
            leadership.epoch,
            leadership.high_watermark,
            tuple(row(*one) for one in voters),
            tuple(
                row(*one)
                for one, peer in sorted(replica.peers.items())
                if one not in voters and peer.fetched_ms > seen_ms
            ),
            quorum.reached(self._listener),
        )

    # Asking others --------------------------------------------------------------------------------

    def _send(self, target: int, what: Message) -> None:
        ways = self.others.to(target)
        if ways is None:
            return  # nobody whom we know how to reach: as a message that is lost
        patience_ms = min(_MAX_WAIT_MS, self._fetch_ms // 4)
        limits = wire.QuorumFetchLimits(  # who does not know who leads asks one after the other
            max_wait_ms=patience_ms if target == self._replica.leader else 0,
            max_bytes=self._max_bytes,
            high_watermark=self._replica.high_watermark,
        )
        voters = self._replica.voters
        sender = wire.Sender(self._identity.cluster_id, voters, self._endpoints)
        key, values = wire.request(what, target, sender, limits)
        link, done, timeout_ms = ways.talk, partial(self._heard, target, what), self._request_ms
        if isinstance(what, Fetch):
            self._number += 1
            self._again_ms = NEVER
            done = partial(self._fetched, target, what, self._number)
            link, timeout_ms = ways.fetch, self._fetch_ms
        link.ask_peer(key, wire.HIGHEST[key], values, done, timeout_ms, wire.LOWEST[key])

    def _answer(self, target: int, what: Message, answer: Any) -> wire.Heard | None:
        """Parses a response; None, with a log event, when it is an error."""
        try:
            if isinstance(answer, PeerError):
                raise answer
            for node, (host, port) in wire.places(answer).items():
                self._hear_of(node, [ControllerEndpoint(self._listener, host, port)])
            return wire.answered(what, answer)
        except PeerError as cause:
            if cause.code != NETWORK_EXCEPTION:
                self._events.event_seldom(
                    WARNING,
                    "voter-refuses",
                    node=target,
                    asked=type(what).__name__.lower(),
                    cause=cause.message,
                )
            return None
        except Exception as bug:  # nothing is acted upon yet
            self._bugs.report(f"answer to {type(what).__name__}", bug, node=target)
            return None

    def _heard(self, target: int, what: Message, answer: Any) -> None:
        said = self._answer(target, what, answer)
        now_ms = self._now_ms()
        if said is None:
            self._replica.lost(target, now_ms)
        elif isinstance(said.what, Voted):
            self._replica.voted_by(target, said.what, now_ms)
        elif isinstance(said.what, BeginEpoch):
            self._replica.begin_epoch(said.what, now_ms)
        self.apply_effects()

    def _fetched(self, target: int, what: Fetch, number: int, answer: Any) -> None:
        if number != self._number:
            return  # another leader is asked by now
        said = self._answer(target, what, answer)
        now_ms = self._now_ms()
        self._again_ms = now_ms + self._backoff_ms
        if said is None:
            if isinstance(answer, PeerError) and answer.code == NETWORK_EXCEPTION:
                self._replica.lost(target, now_ms)
        elif isinstance(said.what, Fetched):
            self._take_over(target, said.what, said.records, now_ms)
        self.apply_effects()

    def _take_over(self, target: int, said: Fetched, records: bytes, now_ms: int) -> None:
        replica, quorum, wall_ms = self._replica, self._quorum, self._clock.wall_ms()
        if said.epoch >= replica.epoch and (wrong := contradiction(said, replica, quorum.log)):
            self._events.event_seldom(WARNING, "metadata-not-taken", node=target, cause=wrong)
            return
        cut = replica.fetched(said, now_ms)
        if cut < 0:
            return
        if said.snapshot is not None:
            self._begin_download(target, said, now_ms)
            return
        try:
            if cut < quorum.log.end_offset:
                gone = quorum.log.end_offset - cut
                self._events.event(NOTICE, "metadata-truncated", to=cut, records=gone)
                quorum.truncate(cut, wall_ms)
            quorum.follow(records, said.epoch, wall_ms)
        except (DiskFull, PeerError) as cause:
            self._again_ms = now_ms + _NO_ROOM_MS
            if isinstance(cause, DiskFull):
                self._way.no_room()
            self._events.event_seldom(ERROR, "metadata-not-taken", node=target, cause=str(cause))
            return
        if records:
            self._way.room()
        replica.take_over(said)
        if not self.level:
            self._goal = said.high_watermark
        self._again_ms = NEVER
        replica.fetch()

    # A snapshot of the leader's -------------------------------------------------------------------

    def _begin_download(self, target: int, said: Fetched, now_ms: int) -> None:
        """Its log begins behind ours."""
        assert said.snapshot is not None
        self._download = Download(said.snapshot, said.epoch)
        fields = {"node": target, "offset": said.snapshot[0], "ours": self._quorum.log.end_offset}
        self._events.event(NOTICE, "metadata-snapshot-fetched", **fields)
        self._go_on(target, now_ms)

    def _go_on(self, target: int, now_ms: int) -> None:
        download = self._download
        assert download is not None
        self._number += 1
        self._again_ms = NEVER
        limit, ways = self._max_bytes, self.others.to(target)
        assert ways is not None, "it has just answered"
        values = wire.snapshot_asked(self._replica, self._identity.cluster_id, download, limit)
        done = partial(self._part, target, self._number)
        ways.fetch.ask_peer(wire.SNAPSHOT, 1, values, done, self._fetch_ms, 0)

    def _part(self, target: int, number: int, answer: Any) -> None:
        """A part of it has come; whatever is wrong with it, the log is fetched again."""
        download, now_ms = self._download, self._now_ms()
        if number != self._number or download is None:
            return
        self._again_ms = now_ms + self._backoff_ms
        try:
            if isinstance(answer, PeerError):
                raise answer
            whole = download.take_part(*wire.snapshot_part(answer, download))
        except PeerError as cause:
            self._download = None
            if cause.code == NETWORK_EXCEPTION:
                self._replica.lost(target, now_ms)
            else:
                why = {"node": target, "asked": "snapshot", "cause": cause.message}
                self._events.event_seldom(WARNING, "voter-refuses", **why)
            self.apply_effects()
            return
        self._replica.goes_on(now_ms)
        if not whole:
            self._go_on(target, now_ms)
            return
        try:
            install(self._disk, self._quorum, download, self._clock.wall_ms())
        except (DiskFull, CheckpointBroken) as cause:
            self._download = None
            self._again_ms = now_ms + _NO_ROOM_MS
            self._events.event_seldom(ERROR, "metadata-not-taken", node=target, cause=str(cause))
            return
        raise BeginAgain(f"the metadata of node {target} up to {download.snapshot[0]} was taken")


def contradiction(said: Fetched, replica: Replica, log: QuorumLog) -> str:
    """Returns why no sound leader can answer this to the replica, "" if one can: its log has all
    that is agreed, and parts from this one before that ends."""
    agreed = replica.high_watermark
    if said.parts is not None:
        epoch, end = said.parts
        mine, my_end = log.end_of(epoch)
        cut = min(end, my_end) if mine == epoch else my_end
        if not agreed <= cut < log.end_offset:
            return f"{CONTRADICTS}: its log parts at {cut}, ours ends at {log.end_offset}"
    if said.snapshot is not None and not (agreed <= said.snapshot[0] and said.snapshot[1] >= 0):
        return f"{CONTRADICTS}: its snapshot ends at {said.snapshot[0]}"
    return ""


def seeds(config: BrokerConfig) -> dict[int, tuple[str, int]]:
    """(host, port) of those of whom others can be asked for, by the negative numbers that stand for
    them, as in Apache Kafka."""
    return {-2 - at: (one.host, one.port) for at, one in enumerate(config.seeds())}
