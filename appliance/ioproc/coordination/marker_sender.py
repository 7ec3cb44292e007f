"""Decided transactions on their way into their partitions: who must be told to write a marker, who
said that it is there, who must be asked again.

A value machine between the coordinators of one I/O process and the homes of all partitions, this
process among them, and other nodes (`remote_markers.py`). An ending begins when its decision is
committed. The partitions of a large one are looked at over turns, `SPREAD` in each. Each is queued
for its home, or for the node that leads it, `SHARE` of them at first and one more with each answer,
so that a small ending is not behind all of a large one; sent (MARK) while there is room in the ring
and fewer than `MOST_SENT` of that home are unanswered; and then marked, or queued again: at once
when its home died or another node leads now, with patience when it refused. Who leads is looked up
when something is queued, sent, and when the metadata changes. Invariant: until a coordinator has
heard of all markers of an ending, each partition of it is not looked at yet, kept back, queued,
sent, resting, or about to be told of. What belongs to a coordinator that is no more is neither sent
nor told: its successor hands out the same again, and a marker that comes late could end another
transaction.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from appliance.base import errors
from appliance.base.home import home_of
from appliance.base.level import LevelTime
from appliance.coordinators.runtime.call import NEVER
from appliance.coordinators.runtime.transaction_effects import Ending, Partition
from appliance.ioproc.coordination.remote_markers import Marker, RemoteMarkers
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import MARK, MARK_COMMIT
from appliance.ring.ring import RingWriter

MOST_SENT: Final = 512
"""Markers that one home has not answered: so many answers may wait for room in its ring."""
SHARE: Final = 64
"""Markers of one ending that one home is asked for at a time: what it writes in a turn, too."""
SPREAD: Final = 512
"""Partitions of large endings that are looked at in a turn."""
FIRST_REST_MS: Final = 50
LONGEST_REST_MS: Final = 5_000
"""How long who refused is left alone: twice as long each time."""
RING_FULL_MS: Final = 1
AT_ONCE: Final = 0

_DOUBLINGS: Final = (LONGEST_REST_MS // FIRST_REST_MS).bit_length()

Tell = Callable[[tuple[Partition, ...], int], bool]
"""Tells the coordinator where markers are now (now in ms); False: it can write nothing down yet."""


class PendingMarkers:
    """An ending that is carried out. back: by share, partitions that are kept back; room: how many
    more of a share may be queued, of a large ending. left: how many the owner was not told of.
    written: those of them that have their marker. refusals: how often the owner could not write in
    a row. rests: it is left alone because of that. over: nobody wants to know any more."""

    __slots__ = ("back", "ending", "left", "over", "owner", "refusals", "rests", "room", "tell",
                 "written")  # fmt: skip

    def __init__(self, ending: Ending, owner: object, tell: Tell) -> None:
        self.ending = ending
        self.owner = owner
        self.tell = tell
        self.back: dict[int, deque[Partition]] = {}
        self.room: dict[int, int] = {}
        self.left = len(ending.partitions)
        self.written: list[Partition] = []
        self.refusals = 0
        self.rests = False
        self.over = False


class MarkerStep(NamedTuple):
    """One partition of an ending. share: whose it is of those that are kept back: of a home, by its
    index, or of a node. refusals: how many it was answered with in a row."""

    carried: PendingMarkers
    partition: Partition
    share: int = 0
    refusals: int = 0


NOBODY: Final = -1
GONE: Final = -2
"""Who leads a partition that has no leader, or is no more."""


def _of_node(node: int) -> int:
    """The share of a node, where those of homes are not negative."""
    return -1 - node


Refused = Callable[[Ending, Partition, int], None]
"""Told of the code with which a marker was refused."""


class MarkerSender:
    """writers: the ring to each I/O process, by index. rows: (topic id, partition) → row of the
    partition table. away: to other nodes. due_ms: when `turn` has something to do, level
    time. time: what that is, where the clock may jump."""

    def __init__(
        self,
        writers: Mapping[int, RingWriter],
        image: MetadataImage,
        rows: Mapping[tuple[bytes, int], int],
        refused: Refused,
        away: RemoteMarkers,
        time: LevelTime | None = None,
    ) -> None:
        self._time = time or LevelTime()
        self._writers = writers
        self._rows = rows
        self._refused = refused
        self._image = image
        self._away = away
        self._node_id = away.node_id
        self._to_nodes: dict[int, deque[MarkerStep]] = {}  # queued, by node
        self._heard: list[
            tuple[int, int, int]
        ] = []  # node, number, error code: since the last turn
        self._unplaced: list[MarkerStep] = []  # whoever leads them is to be looked up
        self._unled: list[MarkerStep] = []  # nobody to ask: they rest from the end of the turn on
        self._unseen: deque[tuple[PendingMarkers, Iterator[Partition]]] = (
            deque()
        )  # of large endings
        self._queued: dict[int, deque[MarkerStep]] = {home: deque() for home in writers}
        self._sent: dict[int, dict[int, MarkerStep]] = {home: {} for home in writers}
        self._resting: list[
            tuple[int, int, MarkerStep | PendingMarkers]
        ] = []  # until when, number, what
        self._untold: dict[PendingMarkers, None] = {}
        self._of: dict[object, dict[PendingMarkers, None]] = {}  # by owner
        self._up: dict[int, bool] = dict.fromkeys(writers, False)
        self._number = 0
        self.due_ms = NEVER

    # What comes -----------------------------------------------------------------------------------

    def begin_ending(self, ending: Ending, owner: object, tell: Tell) -> None:
        """A decision of this coordinator is committed: its markers are to be written."""
        carried = PendingMarkers(ending, owner, tell)
        self._of.setdefault(owner, {})[carried] = None
        if len(ending.partitions) <= SHARE:
            for partition in ending.partitions:
                self._queue(MarkerStep(carried, partition))
        else:
            self._unseen.append((carried, iter(ending.partitions)))
        self.due_ms = AT_ONCE

    def forget_owner(self, owner: object) -> None:
        """The coordinator is no more."""
        for carried in self._of.pop(owner, ()):
            carried.over = True
            self._untold.pop(carried, None)

    def follow(self, image: MetadataImage) -> None:
        """The image of this process may be another one now."""
        self._image = image
        for node in self._away.under_way:
            sent = self._sent[_of_node(node)]
            for number, step in list(sent.items()):
                if self._leader(step.partition) != node:
                    self._unplaced.append(sent.pop(number))
        for queued in self._to_nodes.values():
            self._unplaced += queued
        self._to_nodes.clear()
        if self._unplaced:
            self.due_ms = AT_ONCE

    def changed(self, home: int, *, up: bool) -> None:
        """That process died, or one is in its place now: what was not answered is sent again."""
        self._up[home] = up
        unanswered, self._sent[home] = self._sent[home], {}
        self._queued[home].extendleft(reversed(unanswered.values()))
        self.due_ms = AT_ONCE

    def answered(self, home: int, token: int, code: int, now_ms: int) -> None:
        """Takes an ioproc's answer to a MARK."""
        step = self._sent[home].pop(token, None)
        if step is None:
            return
        self.due_ms = AT_ONCE
        carried = step.carried
        if carried.over:
            return
        if carried.room:
            self._one_more(carried, step.share)
        if code == errors.NONE:
            self._written(step)
            return
        self._refused(carried.ending, step.partition, code)
        if code == errors.INVALID_PRODUCER_EPOCH:
            self._written(step)  # somebody else has ended it there
        else:
            again = step._replace(refusals=step.refusals + 1)
            self._rest(again, again.refusals, now_ms)

    # The turn -------------------------------------------------------------------------------------

    def is_due(self, now_ms: int) -> bool:
        """True if `turn` has something to do. now_ms: here and everywhere the wall clock."""
        return self._time.of(now_ms) >= self.due_ms

    def send_due(self, now_ms: int) -> None:
        """Send what can be sent, tell what is written."""
        if self._unseen:
            self._spread()
        if self._heard or self._unplaced:
            self._hear_nodes(now_ms)
        resting = self._resting
        while resting and resting[0][0] <= self._time.of(now_ms):
            self._wake(heappop(resting)[2])
        stuck = False
        for home, queued in self._queued.items():
            if queued and self._up[home]:
                stuck = not self._send(home, queued) or stuck
        for carried in list(self._untold):
            if not carried.over:
                self._tell(carried, now_ms)
        self.due_ms = resting[0][0] if resting else NEVER
        if stuck:
            self.due_ms = min(self.due_ms, self._time.of(now_ms) + RING_FULL_MS)
        if self._unseen:
            self.due_ms = AT_ONCE
        if self._to_nodes or self._unled or self._unplaced:
            self._ask_nodes(now_ms)

    def _wake(self, what: MarkerStep | PendingMarkers) -> None:
        if isinstance(what, MarkerStep):
            self._queue(what)
        else:
            what.rests = False
            if not what.over:
                self._untold[what] = None

    def _send(self, home: int, queued: deque[MarkerStep]) -> bool:
        """As much as may be; False when the ring was full before that."""
        sent, writer = self._sent[home], self._writers[home]
        while queued and len(sent) < MOST_SENT:
            step = queued[0]
            ending, handle = step.carried.ending, self.handle(step.partition)
            if step.carried.over:
                queued.popleft()
                continue
            if handle is None:
                self._elsewhere(queued.popleft())
                continue
            self._number += 1
            flags, number = MARK_COMMIT if ending.committed else 0, self._number
            who = (ending.producer_id, ending.coordinator_epoch)
            how = (ending.epoch, ending.version)
            if not writer.push(MARK, flags, handle, number, *who, 0, 0, 0, 0, 0, 0, *how):
                return False
            sent[self._number] = queued.popleft()
        return True

    # Other nodes ----------------------------------------------------------------------------------

    def _ask_nodes(self, now_ms: int) -> None:
        """Send to each node that has answered what it was asked last; who has no leader to ask
        rests."""
        for node, queued in list(self._to_nodes.items()):
            if node not in self._away.under_way:
                self._send_away(node, queued)
        unled, self._unled = self._unled, []
        for step in unled:
            again = step._replace(refusals=step.refusals + 1)
            self._rest(again, again.refusals, now_ms)
            self.due_ms = min(self.due_ms, self._resting[0][0])
        if self._heard or self._untold or self._unplaced:
            self.due_ms = AT_ONCE

    def _send_away(self, node: int, queued: deque[MarkerStep]) -> None:
        batch: list[Marker] = []
        sent = self._sent.setdefault(_of_node(node), {})
        while queued and len(batch) < MOST_SENT:
            step = queued.popleft()
            if step.carried.over:
                continue
            self._number += 1
            sent[self._number] = step
            batch.append((self._number, step.carried.ending, step.partition))
        if not queued:
            del self._to_nodes[node]
        if batch:
            self._away.send_markers(node, batch, self._node_answered)

    def _node_answered(self, node: int, number: int, code: int) -> None:
        self._heard.append((node, number, code))
        self.due_ms = AT_ONCE

    def _hear_nodes(self, now_ms: int) -> None:
        """Takes the nodes' answers; then queues each unplaced marker for its current leader."""
        heard, self._heard = self._heard, []
        for node, number, code in heard:
            self.answered(_of_node(node), number, code, now_ms)
        unplaced = self._unplaced
        while unplaced:
            self._queue(unplaced.pop())

    # ----------------------------------------------------------------------------------------------

    def _tell(self, carried: PendingMarkers, now_ms: int) -> None:
        del self._untold[carried]
        assert carried.written and not carried.rests, "there is something new to tell"
        if not carried.tell(tuple(carried.written), now_ms):
            carried.refusals += 1
            carried.rests = True
            self._rest(carried, carried.refusals, now_ms)
            return
        carried.refusals = 0
        carried.left -= len(carried.written)
        carried.written.clear()
        if not carried.left and not carried.over:
            del self._of[carried.owner][carried]

    # ----------------------------------------------------------------------------------------------

    def _queue(self, step: MarkerStep) -> None:
        topic = self._image.topics_by_name.get(step.partition[0])
        if topic is None or self.handle(step.partition) is None:
            self._elsewhere(step)
        else:
            home = home_of(topic.topic_id, step.partition[1], len(self._writers))
            self._queued[home].append(step)

    def _elsewhere(self, step: MarkerStep) -> None:
        """It is none of this node's: another one leads it, or nobody, or it needs no marker any
        more."""
        leader = self._leader(step.partition)
        if leader in (GONE, self._node_id):  # it has no row any more
            self._written(step)
            self._one_more(step.carried, step.share)
        elif leader == NOBODY:
            self._unled.append(step)
        else:
            self._to_nodes.setdefault(leader, deque()).append(step)
        self.due_ms = AT_ONCE

    def _spread(self) -> None:
        """Look at some partitions of large endings: queue the share of each home and node, keep the
        rest back."""
        left = SPREAD
        while self._unseen and left:
            carried, partitions = self._unseen[0]
            some = () if carried.over else tuple(islice(partitions, left))
            if not some:
                self._unseen.popleft()
            left -= len(some)
            for partition in some:
                share = self._share(partition)
                room = carried.room.get(share, SHARE)
                if room:
                    carried.room[share] = room - 1
                    self._queue_share(carried, partition, share)
                else:
                    carried.back.setdefault(share, deque()).append(partition)

    def _share(self, partition: Partition) -> int:
        topic = self._image.topics_by_name.get(partition[0])
        if topic is None:
            return 0  # whoever it is asked of if it is no more
        leader = self._leader(partition)
        if leader in (self._node_id, GONE, NOBODY):
            return home_of(topic.topic_id, partition[1], len(self._writers))
        return _of_node(leader)

    def _one_more(self, carried: PendingMarkers, share: int) -> None:
        """The next partition of this share that was kept back, or the next that is looked at."""
        back = carried.back.get(share)
        if back:
            self._queue_share(carried, back.popleft(), share)
        elif carried.room:
            carried.room[share] = carried.room.get(share, SHARE) + 1

    def _queue_share(self, carried: PendingMarkers, partition: Partition, share: int) -> None:
        step = MarkerStep(carried, partition, share)
        if share >= 0:
            self._queued[share].append(step)
        else:
            self._unplaced.append(step)
            self.due_ms = AT_ONCE

    def handle(self, partition: Partition) -> int | None:
        """Its row; None for a partition that this node does not lead."""
        topic = self._image.topics_by_name.get(partition[0])
        if topic is None or partition[1] >= len(topic.partitions):
            return None
        if topic.partitions[partition[1]].leader != self._node_id:
            return None
        return self._rows.get((topic.topic_id, partition[1]))

    def _leader(self, partition: Partition) -> int:
        """A node, NOBODY or GONE."""
        found = self._image.partition(*partition)
        return GONE if found is None else found.leader

    def _written(self, step: MarkerStep) -> None:
        """The marker is there, or needed no more."""
        carried = step.carried
        carried.written.append(step.partition)
        if not (carried.rests or carried.over):
            self._untold[carried] = None

    def _rest(self, what: MarkerStep | PendingMarkers, refusals: int, now_ms: int) -> None:
        self._number += 1
        rest_ms = min(FIRST_REST_MS << min(refusals - 1, _DOUBLINGS), LONGEST_REST_MS)
        heappush(self._resting, (self._time.of(now_ms) + rest_ms, self._number, what))

    # Read by tests --------------------------------------------------------------------------------

    @property
    def under_way(self) -> int:
        """MarkerSender whose coordinator was not told of all markers."""
        return sum(map(len, self._of.values()))
