"""Decided transactions on their way into their partitions: who must be told to write a marker, who
said that it is there, who must be asked again.

A value machine between the coordinators of one I/O process and the homes of all partitions, this
process among them. An ending begins when its decision is committed. Each of its partitions is
queued for its home, `SHARE` of them at first and one more with each answer, so that a small ending
is not behind all of a large one; sent (MARK) while there is room in the ring and fewer than
`MOST_SENT` of that home are unanswered; and then marked, or queued again: at once when its home
died, with patience when it refused. Invariant: until a coordinator has heard of all markers of an
ending, each partition of it is kept back, queued, sent, resting, or about to be told of. What
belongs to a coordinator that is no more is neither sent nor told: its successor hands out the same
again, and a marker that comes late could end another transaction.
"""

from collections import deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Final, NamedTuple

from appliance.base import errors
from appliance.base.home import home_of
from appliance.coordinators.runtime.call import NEVER
from appliance.coordinators.runtime.ending import Ending, Partition
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import MARK, MARK_COMMIT
from appliance.ring.ring import RingWriter

MOST_SENT: Final = 512
"""Markers that one home has not answered: so many answers may wait for room in its ring."""
SHARE: Final = 64
"""Markers of one ending that one home is asked for at a time: what it writes in a turn, too."""
FIRST_REST_MS: Final = 50
LONGEST_REST_MS: Final = 5_000
"""How long who refused is left alone: twice as long each time."""
RING_FULL_MS: Final = 1
AT_ONCE: Final = 0

_DOUBLINGS: Final = (LONGEST_REST_MS // FIRST_REST_MS).bit_length()

Tell = Callable[[tuple[Partition, ...], int], bool]
"""Tells the coordinator where markers are now (now in ms); False: it can write nothing down yet."""


class Carried:
    """An ending that is carried out. back: by home, partitions that are kept back. left: partitions
    of which the owner was not told. written: those of them that have their marker. refusals: how
    often the owner could not write in a row. rests: it is left alone because of that. over: nobody
    wants to know any more."""

    __slots__ = ("back", "ending", "left", "over", "owner", "refusals", "rests", "tell", "written")

    def __init__(self, ending: Ending, owner: object, tell: Tell) -> None:
        self.ending = ending
        self.owner = owner
        self.tell = tell
        self.back: dict[int, deque[Partition]] = {}
        self.left = len(ending.partitions)
        self.written: list[Partition] = []
        self.refusals = 0
        self.rests = False
        self.over = False


class Step(NamedTuple):
    """One partition of an ending. refusals: how many its home has answered with in a row."""

    carried: Carried
    partition: Partition
    refusals: int = 0


Refused = Callable[[Ending, Partition, int], None]
"""Told of the code with which a marker was refused."""


class Endings:
    """writers: the ring to each I/O process, by index. rows: (topic id, partition) → row of the
    partition table. due_ms: when `turn` has something to do, wall clock."""

    def __init__(
        self,
        writers: Mapping[int, RingWriter],
        image: MetadataImage,
        rows: Mapping[tuple[bytes, int], int],
        refused: Refused,
    ) -> None:
        self._writers = writers
        self._rows = rows
        self._refused = refused
        self._image = image
        self._queued: dict[int, deque[Step]] = {home: deque() for home in writers}
        self._sent: dict[int, dict[int, Step]] = {home: {} for home in writers}
        self._resting: list[tuple[int, int, Step | Carried]] = []  # until when, number, what
        self._untold: dict[Carried, None] = {}
        self._of: dict[object, dict[Carried, None]] = {}  # by owner
        self._up: dict[int, bool] = dict.fromkeys(writers, False)
        self._number = 0
        self.due_ms = NEVER

    # What comes -----------------------------------------------------------------------------------

    def begin(self, ending: Ending, owner: object, tell: Tell) -> None:
        """A decision of this coordinator is committed: its markers are to be written."""
        carried = Carried(ending, owner, tell)
        self._of.setdefault(owner, {})[carried] = None
        if len(ending.partitions) <= SHARE:
            for partition in ending.partitions:
                self._queue(Step(carried, partition))
        else:
            self._keep_back(carried)
        self.due_ms = AT_ONCE

    def forget(self, owner: object) -> None:
        """The coordinator is no more."""
        for carried in self._of.pop(owner, ()):
            carried.over = True
            self._untold.pop(carried, None)

    def follow(self, image: MetadataImage) -> None:
        """The image of this process may be another one now."""
        self._image = image

    def changed(self, home: int, *, up: bool) -> None:
        """That process died, or one is in its place now: what was not answered is sent again."""
        self._up[home] = up
        unanswered, self._sent[home] = self._sent[home], {}
        self._queued[home].extendleft(reversed(unanswered.values()))
        self.due_ms = AT_ONCE

    def answered(self, home: int, token: int, code: int, now_ms: int) -> None:
        """What a home says to a MARK."""
        step = self._sent[home].pop(token, None)
        if step is None:
            return
        self.due_ms = AT_ONCE
        carried = step.carried
        if carried.over:
            return
        if carried.back:
            self._one_more(carried, home)
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

    def turn(self, now_ms: int) -> None:
        """Send what can be sent, tell what is written."""
        resting = self._resting
        while resting and resting[0][0] <= now_ms:
            what = heappop(resting)[2]
            if isinstance(what, Step):
                self._queue(what)
            else:
                what.rests = False
                if not what.over:
                    self._untold[what] = None
        stuck = False
        for home, queued in self._queued.items():
            if queued and self._up[home]:
                stuck = not self._send(home, queued) or stuck
        for carried in list(self._untold):
            if not carried.over:
                self._tell(carried, now_ms)
        self.due_ms = resting[0][0] if resting else NEVER
        if stuck:
            self.due_ms = min(self.due_ms, now_ms + RING_FULL_MS)

    def _send(self, home: int, queued: deque[Step]) -> bool:
        """As much as may be; False when the ring was full before that."""
        sent, writer = self._sent[home], self._writers[home]
        while queued and len(sent) < MOST_SENT:
            step = queued[0]
            ending, handle = step.carried.ending, self.handle(step.partition)
            if step.carried.over:
                queued.popleft()
                continue
            if handle is None:
                self._written(queued.popleft())
                self._one_more(step.carried, home)
                continue
            self._number += 1
            if not writer.push(
                MARK,
                MARK_COMMIT if ending.committed else 0,
                handle,
                self._number,
                ending.producer_id,
                ending.coordinator_epoch,
                e=ending.epoch,
                f=ending.version,
            ):
                return False
            sent[self._number] = queued.popleft()
        return True

    def _tell(self, carried: Carried, now_ms: int) -> None:
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

    def _queue(self, step: Step) -> None:
        topic = self._image.topics_by_name.get(step.partition[0])
        if topic is None or self.handle(step.partition) is None:
            self._written(step)
        else:
            home = home_of(topic.topic_id, step.partition[1], len(self._writers))
            self._queued[home].append(step)

    def _keep_back(self, carried: Carried) -> None:
        """Queue the share of each home, keep the rest back."""
        for partition in carried.ending.partitions:
            topic = self._image.topics_by_name.get(partition[0])
            home = 0  # whoever it is asked of if it is no more
            if topic is not None:
                home = home_of(topic.topic_id, partition[1], len(self._writers))
            carried.back.setdefault(home, deque()).append(partition)
        for home in carried.back:
            for _ in range(SHARE):
                self._one_more(carried, home)

    def _one_more(self, carried: Carried, home: int) -> None:
        """The next partition of this home that was kept back, if there is one."""
        back = carried.back.get(home)
        if back:
            self._queued[home].append(Step(carried, back.popleft()))

    def handle(self, partition: Partition) -> int | None:
        """Its row; None for a partition that is no more, which needs no marker."""
        topic = self._image.topics_by_name.get(partition[0])
        return None if topic is None else self._rows.get((topic.topic_id, partition[1]))

    def _written(self, step: Step) -> None:
        """The marker is there, or needed no more."""
        carried = step.carried
        carried.written.append(step.partition)
        if not (carried.rests or carried.over):
            self._untold[carried] = None

    def _rest(self, what: Step | Carried, refusals: int, now_ms: int) -> None:
        self._number += 1
        rest_ms = min(FIRST_REST_MS << min(refusals - 1, _DOUBLINGS), LONGEST_REST_MS)
        heappush(self._resting, (now_ms + rest_ms, self._number, what))

    # Read by tests --------------------------------------------------------------------------------

    @property
    def under_way(self) -> int:
        """Endings whose coordinator was not told of all markers."""
        return sum(map(len, self._of.values()))
