"""What members of the classic and of the consumer protocol say and hear (`members.Member`).

Invariant: what a member owns is noted in the ledger before it goes on, and given up there before
the coordinator hears of it. Called by `benchmarks.groups` and the tests of groups.
"""

import time
from struct import unpack_from
from typing import Final
from uuid import uuid4

from benchmarks import group_requests as asks
from benchmarks.members import RETRY_S, Crowd, Member

SESSION_MS: Final = 6000
REBALANCE_MS: Final = 30_000

COORDINATOR_GONE: Final = frozenset((14, 15, 16))  # loading, not available, not coordinator
UNKNOWN_MEMBER, REBALANCING, ID_NEEDED = 25, 27, 79
FENCED_EPOCH, STALE_EPOCH = 110, 113


class ClassicMember(Member):
    """A member of the classic protocol: gives up all that it has before it joins again."""

    def begin(self) -> None:
        self.lose()
        request = asks.join(self.group, self.member_id, self.topic, SESSION_MS, REBALANCE_MS, 0)
        self.ask(request, self._joined)

    lost_answer = begin

    def _joined(self, answer: bytes) -> None:
        code, generation, leader, member, members = asks.joined(answer)
        if code:
            self.told.append(code)
            self.member_id = member if code == ID_NEEDED else self.member_id
            self.member_id = "" if code == UNKNOWN_MEMBER else self.member_id
            self.later(self.begin, 0 if code == ID_NEEDED else RETRY_S)
            return
        self.member_id = member
        plan = {}
        if leader == member:
            plan = asks.spread(members, self.topic, self.crowd.partitions)
        request = asks.sync(self.group, generation, member, plan, 0)
        self.ask(request, lambda answer: self._synced(generation, answer))

    def _synced(self, generation: int, answer: bytes) -> None:
        code, partitions = asks.synced(answer)
        if code:
            self._refused(code)
            return
        self.crowd.ledger.own_in(generation, partitions, self.name)
        self.read_offsets(sorted(partitions), lambda: self._settle(generation))

    def _settle(self, generation: int) -> None:
        self.generation = generation
        self.later(self._work)

    def _refused(self, code: int) -> None:
        self.told.append(code)
        if code == UNKNOWN_MEMBER:
            self.member_id = ""
        self.later(self.begin, RETRY_S if code in COORDINATOR_GONE else 0)

    def _work(self) -> None:
        offsets = self.progress()
        if not offsets:
            self._beat()
            return
        self.crowd.ledger.try_(offsets)
        places = [(self.topic, partition, offset) for partition, offset in offsets.items()]
        request = asks.commit(self.group, places, 0, self.generation, self.member_id)
        size = 2 + len(self.topic) + 4 + 6

        def heard(answer: bytes) -> None:
            rows = range(8 + size - 2, len(answer), size)
            code = self.committed(offsets, (unpack_from(">h", answer, at)[0] for at in rows))
            if not code or code in COORDINATOR_GONE or code == REBALANCING:
                self.later(self._beat)
            else:
                self._refused(code)

        self.ask(request, heard)

    def _beat(self) -> None:
        def heard(answer: bytes) -> None:
            (code,) = unpack_from(">h", answer, 4)
            if not code:
                self.later(self._work, 0 if self.progress() else self.crowd.beat_s)
            elif code in COORDINATOR_GONE:
                self.told.append(code)
                self.later(self._beat, RETRY_S)
            else:
                self._refused(code)

        self.ask(asks.heartbeat(self.group, self.generation, self.member_id, 0), heard)

    def say_goodbye(self) -> None:
        self.lose()
        if not self.member_id:
            self.crash()
            return
        self.ask(asks.leave(self.group, self.member_id, 0), lambda answer: self.crash())


class ConsumerMember(Member):
    """A member of the consumer protocol (KIP-848): gives up only what it is asked for."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self.member_id = str(uuid4())
        self._topic_id = b""
        self._asked_s = 0.0

    def begin(self) -> None:
        self.lose()
        self._asked_s = time.monotonic()
        self.ask(
            asks.consumer_heartbeat(
                self.group, self.member_id, 0, 0, topic=self.topic,
                owned=(b"", frozenset()), rebalance_ms=REBALANCE_MS,
            ),
            self._heard,
        )  # fmt: skip

    def lost_answer(self) -> None:
        self.later(self.begin if self.generation < 0 else self._tell)

    def _beat(self, *, full: bool = False) -> None:
        owned = (self._topic_id, frozenset(self.owned)) if full else None
        self._asked_s = time.monotonic()
        self.ask(
            asks.consumer_heartbeat(
                self.group, self.member_id, self.generation, 0, owned=owned,
                topic=self.topic if full else None, rebalance_ms=REBALANCE_MS if full else -1,
            ),
            self._heard,
        )  # fmt: skip

    def _tell(self) -> None:
        """Say all that it has: it is not sure what was heard."""
        self.crowd.ledger.release(self.name, self.owned)
        self._beat(full=True)

    def _heard(self, answer: bytes) -> None:
        code, epoch, assignment = asks.consumer_heard(answer)
        if code in COORDINATOR_GONE:
            self.told.append(code)
            self.later(self.begin if self.generation < 0 else self._tell, RETRY_S)
        elif code:
            self.told.append(code)
            assert code in (UNKNOWN_MEMBER, FENCED_EPOCH), f"ConsumerGroupHeartbeat: error {code}"
            self.later(self.begin)
        else:
            self.generation = epoch
            held = frozenset(self.owned) if assignment is None else assignment[1]
            self.crowd.ledger.hold(held, self.name, self._asked_s, time.monotonic())
            if held == frozenset(self.owned):
                self.later(self._work, 0 if self.progress() else self.crowd.beat_s)
            else:
                assert assignment is not None
                self._topic_id = assignment[0] or self._topic_id
                self._reconcile(held)

    def _reconcile(self, wanted: frozenset[int]) -> None:
        for partition in self.owned.keys() - wanted:
            del self.owned[partition]
        self.crowd.ledger.release(self.name, wanted)
        new = sorted(wanted - self.owned.keys())
        self.crowd.ledger.own_in(self.generation, new, self.name)
        self.read_offsets(new, lambda: self.later(self._tell))

    def _work(self) -> None:
        offsets = self.progress()
        if not offsets:
            self._beat()
            return
        self.crowd.ledger.try_(offsets)
        request = asks.consumer_commit(
            self.group, self.topic, offsets, self.generation, self.member_id, 0
        )

        def heard(answer: bytes) -> None:
            codes = asks.consumer_commit_errors(answer, self.topic)
            code = self.committed(offsets, codes.values())
            assert code in (0, STALE_EPOCH, UNKNOWN_MEMBER, *COORDINATOR_GONE), code
            self.later(self._beat)

        self.ask(request, heard)

    def say_goodbye(self) -> None:
        if self.generation < 0:
            self.crash()
            return
        self.lose()
        request = asks.consumer_heartbeat(self.group, self.member_id, -1, 0)
        self.ask(request, lambda answer: self.crash())
