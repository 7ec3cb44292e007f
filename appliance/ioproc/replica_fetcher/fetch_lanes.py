"""In which of two ways partitions are fetched from a node: those that are nearly level with their
leader, and those that are far behind.

An acknowledgement waits for the answer that brings a record to the replicas in sync. In one
conversation it would wait for megabytes of what others lack, so these have a conversation of their
own, which gives way to writers (`replication/catch_up_throttle.py`). Invariant: whoever an
acknowledgement waits for is level. A leader waits for who had everything at a question before, and
shows nothing that it lacks: the high watermark that it tells is not above what such a one has by
then, and only who lacks something below it is far behind.
"""

from collections.abc import Sized
from typing import Final, NamedTuple, Protocol

from appliance.ioproc.replica_fetcher.fetcher_context import FetcherContext
from appliance.replication.catch_up_throttle import Pace
from appliance.replication.follower import Key
from appliance.wire.fetch_follower import FollowerFetchLimits

FAR: Final = 4
"""Who lacks more than so many times what an answer brought is far behind."""
_ALL: Final = 1 << 31


class Went(NamedTuple):
    """The effect of an answer on a partition. begun, end: its log end before and after.
    high_watermark: the leader's.
    """

    key: Key
    begun: int
    end: int
    high_watermark: int


class FetchLane(Protocol):
    """patient: whether who is new waits for the question that is under way."""

    patient: bool

    @property
    def at_once(self) -> int:
        """The number of partitions that an answer may be due for at a time."""
        ...

    def asks(self, now_ns: int) -> FollowerFetchLimits:
        """A question goes now: what it says of the size of its answer."""
        ...

    def rest_ms(self, now_ns: int) -> int:
        """All that came is held: in how many ms the next question may go, 0: now."""
        ...

    def ends(self, went: Went, size: int, now_ns: int) -> bool:
        """An answer's records of a partition, `size` bytes, are taken: whether it is to be fetched
        in the other manner from now on."""
        ...

    def forget_partition(self, key: Key) -> None:
        """The partition is fetched here no more."""
        ...


class CaughtUpLane:
    """All at once, and at once again."""

    patient = False

    def __init__(self, env: FetcherContext) -> None:
        self.at_once = _ALL
        self._env = env
        self._level: set[Key] = set()  # who had all that was visible

    def asks(self, _: int) -> FollowerFetchLimits:
        return self._env.limits

    def rest_ms(self, _: int) -> int:
        return 0

    def ends(self, went: Went, size: int, now_ns: int) -> bool:
        gained, missing = went.end - went.begun, went.high_watermark - went.end
        if size and went.key in self._level:
            self._env.writing.on_record_written(now_ns)
        if missing <= 0:
            self._level.add(went.key)
        return 0 < gained * FAR < missing

    def forget_partition(self, key: Key) -> None:
        self._level.discard(key)


class CatchUpLane:
    """A few at a time, so that a small answer asks for few, and the first ones are level soon."""

    patient = True  # there is an answer to each question

    def __init__(self, env: FetcherContext, others: Sized) -> None:
        """others: the conversations of this manner, this one among them."""
        self._env = env
        self._others = others
        self._pace = Pace()
        self._marks: dict[Key, int] = {}  # the leader's high watermarks

    @property
    def at_once(self) -> int:
        """As many as a full answer has room for; all while some may be throttled, and wait."""
        limits = self._env.limits
        if self._env.throttle.on:
            return _ALL
        return max(1, limits.max_bytes // max(1, limits.partition_bytes))

    def asks(self, now_ns: int) -> FollowerFetchLimits:
        self._pace.asked(now_ns)
        limits = self._env.limits
        most = self._pace.limit(writing=self._env.writing.goes_on(now_ns))
        return limits._replace(
            max_bytes=min(limits.max_bytes, most),
            partition_bytes=min(limits.partition_bytes, most),
        )

    def rest_ms(self, now_ns: int) -> int:
        writing = self._env.writing.goes_on(now_ns)
        return self._pace.rest_ms(now_ns, len(self._others) - 1, writing=writing)

    def ends(self, went: Went, size: int, now_ns: int) -> bool:
        before = self._marks.get(went.key, went.high_watermark)
        self._marks[went.key] = went.high_watermark
        grown = max(0, went.high_watermark - before)
        if grown:
            self._env.writing.on_record_written(now_ns)
        self._pace.took(size)
        self._pace.add_progress(went.end - went.begun, grown)
        return went.end >= went.high_watermark

    def forget_partition(self, key: Key) -> None:
        self._marks.pop(key, None)
