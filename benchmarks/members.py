"""Group members over raw sockets: many in one thread, of either protocol (`protocols.py`), that
hold the group to what it promises.

A member owns partitions as it is told, reads what is committed when it gets one, commits what it
"read" (offsets below `Ledger.end`), and gives up what it is asked for. Every answer goes through
the `Ledger`, whose assertions are the invariants: one owner for each partition in a generation
(and, in the consumer protocol, at any moment, of two who were both heard of within a session), no
committed offset ever goes back. One request of a member is under way at a time. Called by
`benchmarks.groups` and the tests of groups.
"""

import itertools
import select
import socket
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from struct import unpack_from
from typing import Any, Final

from benchmarks import group_requests as asks

BEAT_S: Final = 0.1
RETRY_S: Final = 0.02
_TURN_S: Final = 0.01
STEP: Final = 50
"""Records that a member reads between two commits of a partition."""

_names = itertools.count(1)


@dataclass
class Ledger:
    """What was promised. end: records that can be read, acknowledged: newest commit that was
    answered, tried: newest that was sent, each by partition; owners: by (generation, partition).

    Of the consumer protocol: holders: who owns a partition now; asked_s: when each member sent the
    newest heartbeat that it has an answer to; session_s: whoever is not heard of for so long is put
    out, and learns it later than whoever is given what it had.
    """

    session_s: float
    end: dict[int, int] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    tried: dict[int, int] = field(default_factory=dict)
    owners: dict[tuple[int, int], str] = field(default_factory=dict)
    holders: dict[int, str] = field(default_factory=dict)
    asked_s: dict[str, float] = field(default_factory=dict)
    commits: int = 0

    def own_in(self, generation: int, partitions: Iterable[int], member: str) -> None:
        for partition in partitions:
            first = self.owners.setdefault((generation, partition), member)
            assert first == member, f"{first} and {member} own {partition} in {generation}"

    def hold(self, partitions: Iterable[int], member: str, asked_s: float, now_s: float) -> None:
        """A heartbeat that was sent at `asked_s` is answered: the member owns these."""
        self.asked_s[member] = asked_s
        for partition in partitions:
            holder = self.holders.setdefault(partition, member)
            if holder == member:
                continue
            if now_s - self.asked_s[holder] >= self.session_s:
                self.holders[partition] = member  # the other one is out, and will be told so
            else:  # or this answer is from before the member was put out
                late = now_s - asked_s >= self.session_s
                assert late, f"{holder} still holds {partition}, and {member} was given it"

    def release(self, member: str, but: Container[int] = ()) -> None:
        """The member owns nothing more, except `but`."""
        self.holders = {p: who for p, who in self.holders.items() if who != member or p in but}

    def found(self, partition: int, offset: int) -> None:
        least = self.acknowledged.get(partition, -1)
        assert least <= offset <= max(self.tried.get(partition, -1), -1), (
            f"partition {partition}: {offset} is committed, {least} was acknowledged, "
            f"{self.tried.get(partition)} tried"
        )

    def try_(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            self.tried[partition] = max(offset, self.tried.get(partition, -1))

    def acknowledge(self, offsets: dict[int, int]) -> None:
        self.commits += len(offsets)
        for partition, offset in offsets.items():
            before = self.acknowledged.get(partition, -1)
            assert offset >= before, f"a commit of {offset} was taken after one of {before}"
            self.acknowledged[partition] = offset


class Member:
    """One member. owned: its partitions with the next offset to commit. generation: or epoch; -1
    while it is not in. told: error codes that it met, in order."""

    def __init__(self, crowd: "Crowd") -> None:
        self.crowd = crowd
        self.group, self.topic = crowd.group, crowd.topic
        self.name = f"m{next(_names)}"
        self.member_id = ""
        self.generation = -1
        self.owned: dict[int, int] = {}
        self.told: list[int] = []
        self.leaving = False
        self.due_s = 0.0
        self._next: Callable[[], None] = self.begin
        self._hear: Callable[[bytes], None] | None = None
        self._partial = b""
        self.socket = socket.create_connection(crowd.address, 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # The wire -------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        return self._hear is None

    def ask(self, request: bytes, hear: Callable[[bytes], None]) -> None:
        assert self._hear is None, "one request at a time"
        self._hear = hear
        try:
            self.socket.sendall(request)
        except OSError:
            self._reconnect()

    def readable(self) -> None:
        try:
            got = self.socket.recv(1 << 16)
        except OSError:
            got = b""
        if not got:
            self._reconnect()
            return
        data = self._partial + got
        if len(data) < 4 or len(data) < 4 + unpack_from(">i", data)[0]:
            self._partial = data
            return
        self._partial = b""
        hear, self._hear = self._hear, None
        assert hear is not None, "an answer to nothing"
        hear(data[8:])

    def _reconnect(self) -> None:
        """The answer to what was asked is lost: go on with a heartbeat or a new join."""
        self.crowd.forget(self)
        self.socket.close()
        self.socket = socket.create_connection(self.crowd.address, 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.crowd.know(self)
        self._partial, self._hear = b"", None
        self.lost_answer()

    def step(self) -> None:
        """Do what is next; called when the member is idle and due."""
        if self.leaving:
            self.say_goodbye()
        else:
            self._next()

    def later(self, action: Callable[[], None], seconds: float = 0.0) -> None:
        self._next, self.due_s = action, time.monotonic() + seconds

    # What it does, in either protocol -------------------------------------------------------------

    def read_offsets(self, partitions: list[int], then: Callable[[], None]) -> None:
        """Own these partitions from where they are committed, then go on."""

        def heard(answer: bytes) -> None:
            code, found = asks.fetched_offsets(answer)
            if code:
                self.told.append(code)
                self.later(lambda: self.read_offsets(partitions, then), RETRY_S)
                return
            for partition in partitions:
                offset = found.get(partition, -1)
                self.crowd.ledger.found(partition, offset)
                self.owned[partition] = max(offset, 0)
            then()

        if not partitions:
            then()
            return
        self.ask(asks.fetch_offsets(self.group, self.topic, partitions, 0), heard)

    def progress(self) -> dict[int, int]:
        """What is to be committed now, by partition."""
        end = self.crowd.ledger.end
        return {
            p: min(at + STEP, end.get(p, 0)) for p, at in self.owned.items() if at < end.get(p, 0)
        }

    def committed(self, offsets: dict[int, int], codes: Iterable[int]) -> int:
        """Note what was answered; the first error."""
        code = next((code for code in codes if code), 0)
        if code:
            self.told.append(code)
            return code
        self.crowd.ledger.acknowledge(offsets)
        for partition, offset in offsets.items():
            if partition in self.owned:
                self.owned[partition] = offset
        return 0

    def lose(self) -> None:
        self.crowd.ledger.release(self.name)
        self.owned.clear()
        self.generation = -1

    def crash(self) -> None:
        """End without a word."""
        self.lose()
        self.crowd.forget(self)
        self.crowd.members.remove(self)
        self.socket.close()

    def begin(self) -> None:
        raise NotImplementedError

    def say_goodbye(self) -> None:
        raise NotImplementedError

    def lost_answer(self) -> None:
        raise NotImplementedError


class Crowd:
    """Members of one group on one thread. kind: of `benchmarks.protocols`. session_s: the broker's
    group.consumer.session.timeout.ms. beat_s: from an answer to the next heartbeat of a member."""

    def __init__(
        self,
        address: tuple[str, int],
        group: str,
        topic: str,
        partitions: int,
        kind: type[Member],
        session_s: float = 45.0,
        beat_s: float = BEAT_S,
    ) -> None:
        self.beat_s = beat_s
        self.address, self.group, self.topic = address, group, topic
        self.partitions = partitions
        self.kind = kind
        self.ledger = Ledger(session_s)
        self.members: list[Member] = []
        self._poll = select.epoll()
        self._by_fd: dict[int, Member] = {}

    def add(self, count: int = 1, kind: type[Member] | None = None) -> list[Member]:
        """So many new members, which begin to join at the next turn."""
        new = [(kind or self.kind)(self) for _ in range(count)]
        for member in new:
            self.know(member)
        self.members += new
        return new

    def know(self, member: Member) -> None:
        self._by_fd[member.socket.fileno()] = member
        self._poll.register(member.socket.fileno(), select.EPOLLIN)

    def forget(self, member: Member) -> None:
        if self._by_fd.pop(member.socket.fileno(), None) is not None:
            self._poll.unregister(member.socket.fileno())

    def settled(self) -> bool:
        """Everybody is in the same generation and owns something (there are enough partitions),
        and each partition has one owner."""
        if any(member.generation < 0 or member.leaving for member in self.members):
            return False
        if not all(member.owned for member in self.members):
            return False
        owned = sorted(p for member in self.members for p in member.owned)
        same = len({member.generation for member in self.members}) == 1
        return same and owned == list(range(self.partitions))

    def turn(self) -> None:
        """Act and hear once."""
        now_s = time.monotonic()
        for member in list(self.members):
            if member.idle and (member.due_s <= now_s or member.leaving):
                member.step()
        for fd, _ in self._poll.poll(min(_TURN_S, self.beat_s / 4)):
            if (found := self._by_fd.get(fd)) is not None:
                found.readable()

    def until(
        self, check: Callable[[], Any], limit_s: float = 60, each: Callable[[], Any] = lambda: None
    ) -> float:
        """Go on until `check` holds; the seconds it took. each: is called every turn."""
        begun = time.monotonic()
        while not check():
            assert time.monotonic() < begun + limit_s, self.describe()
            self.turn()
            each()
        return time.monotonic() - begun

    def describe(self) -> str:
        """For an assertion: who is where."""
        rows = [f"{m.name}: {m.generation} {sorted(m.owned)} {m.told[-4:]}" for m in self.members]
        return f"{len(rows)} members of {self.group}\n" + "\n".join(rows)

    def close(self) -> None:
        for member in list(self.members):
            member.crash()
        self._poll.close()
